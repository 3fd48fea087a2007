"""Named switch and NIC settings with their source, scaled by the hosts' link rate.

A preset answers "what would an operator configure?" for one host link rate. Byte thresholds scale
with that rate and timers do not, as HPCC's authors do for their production settings (GitHub issue
21 of alibaba-edu/High-Precision-Congestion-Control). Rate steps scale where the source scales them;
the firmware's defaults and the DCQCN paper's are absolute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from roce_gym.config import (
    BufferConfig,
    ClassSettings,
    DcqcnConfig,
    EcnConfig,
    Scenario,
    Settings,
    SwitchOverride,
)
from roce_gym.errors import ConfigError

REFERENCE_RATE_GBPS = 100.0


@dataclass(frozen=True)
class Preset:
    """A named setting.

    Attributes:
        name: as used in scenario files and on the command line.
        source: where the numbers come from.
        ecn: host rate in Gb/s -> ECN line.
        dcqcn: host rate in Gb/s -> sender parameters.
        buffer: thresholds and reserve; alpha 1/8 as in the HPCC repository's switch model.
    """

    name: str
    source: str
    ecn: Callable[[float], EcnConfig]
    dcqcn: Callable[[float], DcqcnConfig]
    buffer: BufferConfig = BufferConfig()


def _scaled_ecn(
    kmin_bytes: float, kmax_bytes: float, pmax: float, at_gbps: float = REFERENCE_RATE_GBPS
) -> Callable[[float], EcnConfig]:
    def at_rate(rate_gbps: float) -> EcnConfig:
        scale = rate_gbps / at_gbps
        return EcnConfig(
            kmin_bytes=round(kmin_bytes * scale), kmax_bytes=round(kmax_bytes * scale), pmax=pmax
        )

    return at_rate


def _no_ecn(_rate_gbps: float) -> EcnConfig:
    return EcnConfig(enabled=False, kmin_bytes=0, kmax_bytes=0, pmax=0.0)


def _connectx(_rate_gbps: float) -> DcqcnConfig:
    return DcqcnConfig(byte_counter_bytes=32767 * 64)


def _dcqcn_paper(_rate_gbps: float) -> DcqcnConfig:
    return DcqcnConfig(
        alpha_interval_us=55,
        decrease_interval_us=50,
        increase_timer_us=55,
        byte_counter_bytes=10_000_000,
        fast_recovery_times=5,
        rate_ai_mbps=40,
        rate_hai_mbps=400,
        min_rate_mbps=40,
        g=1 / 256,
        initial_alpha=1.0,
    )


def _hpcc_production(rate_gbps: float) -> DcqcnConfig:
    scale = rate_gbps / 25.0
    return DcqcnConfig(
        alpha_interval_us=1,
        decrease_interval_us=4,
        increase_timer_us=300,
        fast_recovery_times=1,
        rate_ai_mbps=5 * scale,
        rate_hai_mbps=50 * scale,
        min_rate_mbps=100,
        g=1 / 256,
        initial_alpha=1.0,
    )


def _multi_tenant_tuned(rate_gbps: float) -> DcqcnConfig:
    scale = rate_gbps / REFERENCE_RATE_GBPS
    return DcqcnConfig(
        alpha_interval_us=1,
        decrease_interval_us=4,
        increase_timer_us=500,
        fast_recovery_times=1,
        rate_ai_mbps=50 * scale,
        rate_hai_mbps=150 * scale,
        min_rate_mbps=100,
        g=0.0625,
        initial_alpha=0.125,
        alpha_cap=0.125,
    )


def _paraleon_expert(rate_gbps: float) -> DcqcnConfig:
    scale = rate_gbps / REFERENCE_RATE_GBPS
    return DcqcnConfig(
        alpha_interval_us=1,
        decrease_interval_us=80,
        increase_timer_us=300,
        fast_recovery_times=1,
        rate_ai_mbps=50 * scale,
        rate_hai_mbps=150 * scale,
        min_rate_mbps=100,
        g=1 / 256,
    )


def _line_rate(_rate_gbps: float) -> DcqcnConfig:
    return DcqcnConfig(enabled=False)


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "connectx_default",
            "NVIDIA ConnectX firmware defaults ('DCQCN parameters' and DOCA DCQCN pages); ECN line "
            "of HPCC's production switches, since a NIC vendor ships none",
            _scaled_ecn(400_000, 1_600_000, 0.2),
            _connectx,
        ),
        Preset(
            "dcqcn_paper",
            "Zhu et al., SIGCOMM 2015: 40G, Kmin 5 KB, Kmax 200 KB, Pmax 1 %, timers 55/50/55 us, "
            "F 5, byte counter 10 MB, R_AI 40 Mb/s, g 1/256",
            _scaled_ecn(5_000, 200_000, 0.01, at_gbps=40.0),
            _dcqcn_paper,
        ),
        Preset(
            "hpcc_production",
            "Alibaba production as in the HPCC repository (run.py, issue 21): per 25 Gb/s Kmin "
            "100 KB, Kmax 400 KB, Pmax 0.2, AI 5 and HAI 50 Mb/s",
            _scaled_ecn(400_000, 1_600_000, 0.2),
            _hpcc_production,
        ),
        Preset(
            "multi_tenant_tuned",
            "Operators' recommendation for shared training fabrics: alpha 0.125, g 0.0625, Kmin "
            "384 KB, Kmax 2,048 KB, recovery 500 us. Not given there: AI, HAI and lowest rate (as "
            "Paraleon's expert setting), Pmax (as HPCC)",
            _scaled_ecn(384_000, 2_048_000, 0.2),
            _multi_tenant_tuned,
        ),
        Preset(
            "paraleon_expert",
            "Paraleon 'expert' setting (ParaleonPlus repository, run.py): Kmin 1,600 KB, Kmax "
            "6,400 KB, Pmax 0.2, cut interval 80 us, AI 50 and HAI 150 Mb/s",
            _scaled_ecn(1_600_000, 6_400_000, 0.2),
            _paraleon_expert,
        ),
        Preset(
            "pfc_only",
            "no end-to-end congestion control: line rate, no ECN, as Meta ran 400G training "
            "fabrics (SIGCOMM 2024); lossy classes, which have no PFC, keep the scenario's ECN",
            _no_ecn,
            _line_rate,
        ),
    )
}


def get_preset(name: str) -> Preset:
    """Returns a preset by name.

    Raises:
        ConfigError: unknown name.
    """
    if name not in PRESETS:
        raise ConfigError(f"preset: {name!r} is unknown; allowed: {', '.join(sorted(PRESETS))}")
    return PRESETS[name]


def resolve_settings(
    scenario: Scenario, host_rate_gbps: float, preset: str | None = None
) -> Settings:
    """The settings a run starts with.

    Args:
        scenario: values it gives for a class or tenant win over the scenario's own preset.
        host_rate_gbps: the preset is scaled to this rate.
        preset: if given, replaces the scenario's preset and everything the scenario gives
            for ECN and DCQCN, also at some switches only; only where it does not mark at all do
            lossy classes keep their marks. Weights, shapers and thresholds of buffers at some
            switches only are the scenario's in any case.
    """
    chosen = get_preset(scenario.preset if preset is None else preset)
    ecn, dcqcn = chosen.ecn(host_rate_gbps), chosen.dcqcn(host_rate_gbps)
    own = preset is None
    # Without PFC and without marks a lossy class would have nothing but drops to tell senders by.
    of_scenario = get_preset(scenario.preset).ecn(host_rate_gbps)
    keep_ecn = {c.name for c in scenario.classes if own or not (c.lossless or ecn.enabled)}
    return Settings(
        classes={
            c.name: ClassSettings(
                ecn=(c.ecn or of_scenario) if c.name in keep_ecn else ecn,
                buffer=_buffer(scenario, c.buffer, chosen.buffer),
                weight=c.weight,
                shaper=c.shaper,
            )
            for c in scenario.classes
        },
        tenants={t.name: t.dcqcn if own and t.dcqcn else dcqcn for t in scenario.tenants},
        senders={t.name: t.own_sender for t in scenario.tenants if t.own_sender is not None},
        shapers={t.name: t.shaper for t in scenario.tenants if t.shaper is not None},
        switch_overrides=tuple(_kept(one, keep_ecn) for one in scenario.switch.overrides),
    )


def _kept(override: SwitchOverride, keep_ecn: Collection[str]) -> SwitchOverride:
    """An override without its ECN, but for some classes."""
    classes = {
        name: one if name in keep_ecn else one.model_copy(update={"ecn": None})
        for name, one in override.classes.items()
    }
    return override.model_copy(update={"classes": classes})


def _buffer(
    scenario: Scenario, given: BufferConfig | None, of_preset: BufferConfig
) -> BufferConfig:
    """The scenario's, else the preset's with the alpha of the switch ASIC."""
    asic = scenario.switch.known
    if given is not None:
        return given
    if asic is None or asic.alpha is None:
        return of_preset
    return of_preset.model_copy(update={"alpha": asic.alpha})
