"""The scenario: a typed, frozen, validated description of a fabric, its settings and its tenants.

Everything downstream is built from a :class:`Scenario`; nothing downstream reads YAML. Unknown keys
and impossible values are rejected here, before anything runs. Units are in the field names.
"""

from __future__ import annotations

from roce_gym.config.cables import NS_PER_M
from roce_gym.config.clos import Clos3, FatTree, LeafSpine, RailOptimised
from roce_gym.config.collectives import ALGORITHMS, Collective, Pipeline
from roce_gym.config.control import ControlConfig, KnobMode, KnobRange, PollingConfig
from roce_gym.config.credit import CreditConfig
from roce_gym.config.delay import RttConfig, SwiftConfig
from roce_gym.config.devices import NicConfig, SwitchConfig, TrafficClass
from roce_gym.config.dscp import CODES_PER_PRIORITY, DscpConfig, DscpOverride
from roce_gym.config.faults import FaultsConfig, Storm
from roce_gym.config.fields import MAX_PRIORITIES, MAX_RATE_GBPS, MAX_VALUE, MIN_RATE_GBPS
from roce_gym.config.int_throttle import IntThrottleConfig
from roce_gym.config.job_class import job_dscp
from roce_gym.config.networks import Dumbbell, Ring, Star, Topology, TopologyFile, Triangle
from roce_gym.config.none import NoneConfig
from roce_gym.config.pfc import MAX_QUANTA, PfcConfig, WatchdogConfig
from roce_gym.config.queueing import check_shapers, pool_numbers, pool_sizes
from roce_gym.config.routing import (
    LinkDown,
    LinkEvent,
    LinkLossy,
    LinkSlow,
    RoutingConfig,
    RoutingPolicy,
)
from roce_gym.config.scenario import (
    MAX_SCALE,
    Scales,
    Scenario,
    SimulatorConfig,
    class_order,
    job_class,
    validate_scenario,
)
from roce_gym.config.selector import SwitchSelector
from roce_gym.config.senders import (
    SENDER_CONFIGS,
    AlgorithmName,
    DcqcnConfig,
    HpccConfig,
    SenderConfig,
    TimelyConfig,
    WindowConfig,
)
from roce_gym.config.settings import (
    MAX_WEIGHT,
    MIN_SHAPER_GBPS,
    BufferConfig,
    ClassOverride,
    ClassSettings,
    EcnConfig,
    Settings,
    ShaperConfig,
    SwitchOverride,
)
from roce_gym.config.tcp import DctcpConfig, RenoConfig
from roce_gym.config.tenants import (
    AllToAll,
    Flow,
    FlowList,
    Incast,
    Job,
    Placement,
    RingAllReduce,
    Tenant,
    sender_settings,
)
from roce_gym.config.traces import PoissonJob, TraceJob
from roce_gym.config.training_jobs import FineTuning, Inference, Training, carrier_of
from roce_gym.config.user import UserConfig

__all__ = [
    "ALGORITHMS",
    "CODES_PER_PRIORITY",
    "MAX_PRIORITIES",
    "MAX_QUANTA",
    "MAX_RATE_GBPS",
    "MAX_SCALE",
    "MAX_VALUE",
    "MAX_WEIGHT",
    "MIN_RATE_GBPS",
    "MIN_SHAPER_GBPS",
    "NS_PER_M",
    "SENDER_CONFIGS",
    "AlgorithmName",
    "AllToAll",
    "BufferConfig",
    "ClassOverride",
    "ClassSettings",
    "Clos3",
    "Collective",
    "ControlConfig",
    "CreditConfig",
    "DcqcnConfig",
    "DctcpConfig",
    "DscpConfig",
    "DscpOverride",
    "Dumbbell",
    "EcnConfig",
    "FatTree",
    "FaultsConfig",
    "FineTuning",
    "Flow",
    "FlowList",
    "HpccConfig",
    "Incast",
    "Inference",
    "IntThrottleConfig",
    "Job",
    "KnobMode",
    "KnobRange",
    "LeafSpine",
    "LinkDown",
    "LinkEvent",
    "LinkLossy",
    "LinkSlow",
    "NicConfig",
    "NoneConfig",
    "PfcConfig",
    "Pipeline",
    "Placement",
    "PoissonJob",
    "PollingConfig",
    "RailOptimised",
    "RenoConfig",
    "Ring",
    "RingAllReduce",
    "RoutingConfig",
    "RoutingPolicy",
    "RttConfig",
    "Scales",
    "Scenario",
    "SenderConfig",
    "Settings",
    "ShaperConfig",
    "SimulatorConfig",
    "Star",
    "Storm",
    "SwiftConfig",
    "SwitchConfig",
    "SwitchOverride",
    "SwitchSelector",
    "Tenant",
    "TimelyConfig",
    "Topology",
    "TopologyFile",
    "TraceJob",
    "TrafficClass",
    "Training",
    "Triangle",
    "UserConfig",
    "WatchdogConfig",
    "WindowConfig",
    "carrier_of",
    "check_shapers",
    "class_order",
    "job_class",
    "job_dscp",
    "pool_numbers",
    "pool_sizes",
    "sender_settings",
    "validate_scenario",
]
