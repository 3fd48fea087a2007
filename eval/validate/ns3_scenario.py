"""From a reference run to a scenario of this simulator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eval.validate.ns3_params import Parameters
from eval.validate.ns3_reference import Reference
from eval.validate.ns3_rng import initial_state, stream_of
from roce_gym.config import (
    BufferConfig,
    DcqcnConfig,
    EcnConfig,
    Flow,
    FlowList,
    NicConfig,
    PfcConfig,
    Scenario,
    SimulatorConfig,
    SwitchConfig,
    Tenant,
    TopologyFile,
    TrafficClass,
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
    for field, given, wanted in (
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
    return NicConfig(
        mtu_bytes=parameters.payload_bytes,
        header_bytes=_HEADER_BYTES,
        ack_bytes=_ACK_BYTES,
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
        dcqcn=_dcqcn(parameters),
        jobs=(FlowList(flows=flows),),
    )


def _dcqcn(parameters: Parameters) -> DcqcnConfig:
    """The reference cuts fractions of a microsecond off its intervals."""
    ai, hai, least = (
        parse_rate_bps(text) / BPS_PER_MBPS
        for text in (parameters.rate_ai, parameters.rate_hai, parameters.min_rate)
    )
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
