"""From a reference run to a scenario of this simulator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from eval.validate.ns3_params import Parameters
from eval.validate.ns3_rng import initial_state, stream_of
from eval.validate.ns3_types import Reference
from roce_gym.config import (
    BufferConfig,
    DcqcnConfig,
    EcnConfig,
    Flow,
    FlowList,
    HpccConfig,
    NicConfig,
    PfcConfig,
    Scenario,
    SimulatorConfig,
    SwitchConfig,
    Tenant,
    TimelyConfig,
    TopologyFile,
    TrafficClass,
    WindowConfig,
)
from roce_gym.errors import ConfigError
from roce_gym.topology import check_network
from roce_gym.topology.graph import Network
from roce_gym.topology.hpcc_file import parse_rate_bps
from roce_gym.units import BPS_PER_MBPS, PS_PER_NS, PS_PER_US
from roce_gym.workload.plan import Plan
from roce_gym.workload.planner import make_plan

# Fixed in the reference's source, see its README, sections 4 and 6.
_HEADER_BYTES, _ACK_BYTES, _PFC_BYTES = 48, 60, 43
_BARE_ACK_BYTES = 46  # before it is filled up to the least frame
_FEEDBACK_BYTES = {"timely": 8, "hpcc": 42}
_TX_UNIT_BYTES, _QUEUE_UNIT_BYTES = 128, 80
_TIMELY = TimelyConfig()  # constants of the reference's source
_HEADROOM_RATE_DELAYS = 3
_XON_OFFSET_BYTES = 3072
_RESERVED_BYTES = 4096
_NACK_INTERVAL_US = 500
_BYTES_PER_KB = 1000


@dataclass(frozen=True)
class Case:
    """One run, without its seed.

    Attributes:
        scenario, network, plan: what to build.
        stop_ps: end of the run, if flows are not done before.
        marks_at_random, loses_at_random: whether switches or links draw random numbers.
    """

    scenario: Scenario
    network: Network
    plan: Plan
    stop_ps: int
    marks_at_random: bool
    loses_at_random: bool

    @property
    def draws(self) -> bool:
        """Whether results depend on random numbers."""
        return self.marks_at_random or self.loses_at_random

    def with_draws_of(self, seed: int) -> Case:
        """The same run with the numbers that the reference draws for marking from this seed."""
        nodes = self.network.num_hosts + self.network.num_switches
        state = initial_state(seed, stream_of(nodes))
        return self._with(self.scenario.simulator.model_copy(update={"mrg32k3a_state": state}))

    def with_default_rules(self) -> Case:
        """The same run with this simulator's own order of simultaneous events and clock."""
        return self._with(SimulatorConfig())

    def _with(self, simulator: SimulatorConfig) -> Case:
        scenario = self.scenario.model_copy(update={"simulator": simulator})
        return replace(self, scenario=scenario)


def build_case(reference: Reference, variant: str) -> Case:
    """The run that corresponds to a variant of a scenario: all as in the reference but the draws.

    Raises:
        ConfigError: the reference uses something that this simulator does not have.
    """
    parameters = reference.parameters[variant]
    name = f"{reference.name}/{variant}"
    _require_supported(name, parameters, reference)
    network = reference.network
    if parameters.link_loss > 0:
        loss = np.where(network.link_loss > 0, network.link_loss, parameters.link_loss)
        network = replace(network, link_loss=loss)
    check_network(network)
    scenario = Scenario(
        name=name,
        topology=TopologyFile(path=f"{reference.name}/topology.txt"),
        switch=SwitchConfig(
            buffer_bytes=parameters.buffer_mib * 2**20,
            ecn_scales_with_rate=True,
            alpha_scales_with_rate=True,
        ),
        nic=_nic(parameters),
        pfc=PfcConfig(quanta=0),  # there, a pause holds until it is resumed
        classes=(
            TrafficClass(
                priority=reference.flows[0].priority,
                headroom_rate_delays=_HEADROOM_RATE_DELAYS,
                xon_offset_bytes=_XON_OFFSET_BYTES,
                ecn=_ecn(name, parameters, network),
                buffer=BufferConfig(
                    alpha=2.0**-parameters.pfc_shift, reserved_bytes=_RESERVED_BYTES
                ),
            ),
        ),
        tenants=(_tenant(reference, parameters),),
        simulator=SimulatorConfig(
            tie_order="scheduled", clock_ps=1 if parameters.picoseconds else PS_PER_NS
        ),
    )
    plan = make_plan(scenario, network, seed=0)
    return Case(
        scenario,
        network,
        plan,
        parameters.stop_ps,
        marks_at_random=parameters.marks_at_random,
        loses_at_random=bool((network.link_loss > 0).any()),
    )


def _require_supported(name: str, parameters: Parameters, reference: Reference) -> None:
    wanted_of_hpcc = [
        ("FAST_REACT", parameters.fast_react, 1),
        ("MULTI_RATE", parameters.per_hop_rate, 0),
        ("SAMPLE_FEEDBACK", parameters.sample_feedback, 0),
        ("HAS_WIN", parameters.has_window, 1),
        ("VAR_WIN", parameters.follows_rate, 1),
    ]
    for field, given, wanted in (
        *(wanted_of_hpcc if parameters.algorithm == "hpcc" else ()),
        ("GLOBAL_T", parameters.global_rtt, 1),
        ("RATE_BOUND", parameters.rate_bound, 1),
        ("USE_DYNAMIC_PFC_THRESHOLD", parameters.dynamic_threshold, 1),
        ("L2_BACK_TO_ZERO", parameters.back_to_zero, 0),
        ("SWITCH_ACK_HIGH_PRIO", parameters.switch_ack_high_prio, 0),
    ):
        if given != wanted:
            raise ConfigError(f"{name}: {field} = {given} is not supported; allowed: {wanted}")
    priorities = sorted({flow.priority for flow in reference.flows})
    if len(priorities) != 1:
        raise ConfigError(f"{name}: flows of one priority are supported, found {priorities}")


def _nic(parameters: Parameters) -> NicConfig:
    feedback = _FEEDBACK_BYTES.get(parameters.algorithm or "", 0)
    return NicConfig(
        mtu_bytes=parameters.payload_bytes,
        header_bytes=_HEADER_BYTES + feedback,
        ack_bytes=max(_ACK_BYTES, _BARE_ACK_BYTES + feedback),
        pfc_bytes=_PFC_BYTES,
        interframe_gap_bytes=0,
        ack_every=1,
        cnp_mode="ack_echo",
        retransmit_timeout_us=0,
        nack_interval_us=_NACK_INTERVAL_US,
        ack_ignores_pause=parameters.ack_high_prio == 1,
    )


def _ecn(name: str, parameters: Parameters, network: Network) -> EcnConfig:
    """The line at host rate, after checking that other rates have it in proportion."""
    host_bps = network.host_rate_bps
    switch_links = network.link_src >= network.num_hosts
    rates = sorted({host_bps, *network.link_rate_bps[switch_links].tolist()})
    for field, by_rate, grows in (
        ("KMIN_MAP", parameters.kmin_kb, True),
        ("KMAX_MAP", parameters.kmax_kb, True),
        ("PMAX_MAP", parameters.pmax, False),
    ):
        for rate in rates:
            if rate not in by_rate:
                raise ConfigError(f"{name}: {field} has no value for links of {rate} bit/s")
            wanted = by_rate[host_bps] * (rate / host_bps if grows else 1)
            if parameters.ecn and abs(by_rate[rate] - wanted) > 1e-9 * wanted:
                raise ConfigError(
                    f"{name}: {field} = {by_rate[rate]:g} at {rate} bit/s is not supported; "
                    f"allowed: {wanted:g}, in proportion to hosts of {host_bps} bit/s"
                )
    return EcnConfig(
        enabled=parameters.ecn == 1,
        kmin_bytes=round(parameters.kmin_kb[host_bps] * _BYTES_PER_KB),
        kmax_bytes=round(parameters.kmax_kb[host_bps] * _BYTES_PER_KB),
        pmax=parameters.pmax[host_bps],
    )


def _tenant(reference: Reference, parameters: Parameters) -> Tenant:
    flows = tuple(
        Flow(
            src=flow.src,
            dst=flow.dst,
            bytes=flow.bytes,
            start_us=flow.start_ps / PS_PER_US,
            data_path=data_path,
            ack_path=ack_path,
        )
        for flow, (data_path, ack_path) in zip(reference.flows, reference.paths, strict=True)
    )
    hosts = sorted({host for flow in flows for host in (flow.src, flow.dst)})
    return Tenant(
        name="reference",
        hosts=tuple(hosts),
        cc=parameters.algorithm or "dcqcn",
        dcqcn=_dcqcn(parameters),
        timely=_timely(parameters) if parameters.algorithm == "timely" else None,
        hpcc=_hpcc(parameters) if parameters.algorithm == "hpcc" else None,
        window=_window(reference, parameters) if parameters.has_window else None,
        jobs=(FlowList(flows=flows),),
    )


def _window(reference: Reference, parameters: Parameters) -> WindowConfig:
    """One BDP of the longest path: its rate times its round trip, in whole nanoseconds."""
    network = reference.network
    number = {int(label): node for node, label in enumerate(network.node_label)}
    link = {
        ends: i
        for i, ends in enumerate(
            zip(network.link_src.tolist(), network.link_dst.tolist(), strict=True)
        )
    }
    rtt_ns = bdp_bytes = 0
    for path, _ in reference.paths:
        nodes = [number[label] for label in path]
        links = [link[ends] for ends in pairwise(nodes)]
        rates = [int(network.link_rate_bps[i]) for i in links]
        bits = 8 * parameters.payload_bytes
        own_ns = sum(bits * 10**9 // rate for rate in rates)
        own_ns += 2 * int(network.link_delay_ps[links].sum()) // PS_PER_NS
        rtt_ns = max(rtt_ns, own_ns)
        bdp_bytes = max(bdp_bytes, own_ns * min(rates) // 10**9 // 8)
    return WindowConfig(
        bytes=bdp_bytes,
        follows_rate=parameters.follows_rate == 1,
        base_rtt_us=rtt_ns * PS_PER_NS / PS_PER_US,
    )


def _rates_mbps(parameters: Parameters) -> tuple[float, float, float]:
    """Additive and hyper increase, lowest rate."""
    texts = (parameters.rate_ai, parameters.rate_hai, parameters.min_rate)
    ai, hai, least = (parse_rate_bps(text) / BPS_PER_MBPS for text in texts)
    return ai, hai, least


def _timely(parameters: Parameters) -> TimelyConfig:
    ai, hai, least = _rates_mbps(parameters)
    update = {"rate_ai_mbps": ai, "rate_hai_mbps": hai, "min_rate_mbps": least}
    return _TIMELY.model_copy(update=update)


def _hpcc(parameters: Parameters) -> HpccConfig:
    ai, _, least = _rates_mbps(parameters)
    return HpccConfig(
        target_utilisation=parameters.target_utilisation,
        max_stage=parameters.max_stage,
        rate_ai_mbps=ai,
        min_rate_mbps=least,
        tx_unit_bytes=_TX_UNIT_BYTES * parameters.int_multi,
        queue_unit_bytes=_QUEUE_UNIT_BYTES * parameters.int_multi,
    )


def _dcqcn(parameters: Parameters) -> DcqcnConfig:
    """The reference cuts fractions of a microsecond off its intervals."""
    ai, hai, least = _rates_mbps(parameters)
    return DcqcnConfig(
        enabled=parameters.has_dcqcn,
        alpha_interval_us=int(parameters.alpha_interval_us),
        decrease_interval_us=int(parameters.decrease_interval_us),
        increase_timer_us=int(parameters.increase_timer_us),
        byte_counter_bytes=0,
        fast_recovery_times=parameters.fast_recovery_times,
        rate_ai_mbps=ai,
        rate_hai_mbps=hai,
        min_rate_mbps=least,
        g=parameters.g,
        initial_alpha=1.0,
        alpha_cap=1.0,
        cut_divisor=2,
        min_decrease_factor=0.0,
        clamp_target_rate=parameters.clamp_target_rate == 1,
        clamp_target_rate_after_time_inc=True,
    )
