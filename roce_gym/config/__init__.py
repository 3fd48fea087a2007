"""The scenario: a typed, frozen, validated description of a fabric, its settings and its tenants.

Everything downstream is built from a :class:`Scenario`; nothing downstream reads YAML. Unknown keys
and impossible values are rejected here, before anything runs. Units are in the field names.
"""

from __future__ import annotations

from roce_gym.config.cables import NS_PER_M
from roce_gym.config.clos import Clos3, FatTree, LeafSpine, RailOptimised
from roce_gym.config.credit import CreditConfig
from roce_gym.config.delay import RttConfig, SwiftConfig
from roce_gym.config.devices import NicConfig, SwitchConfig, TrafficClass
from roce_gym.config.fields import MAX_PRIORITIES, MAX_RATE_GBPS, MAX_VALUE, MIN_RATE_GBPS
from roce_gym.config.networks import Dumbbell, Ring, Star, Topology, TopologyFile, Triangle
from roce_gym.config.scenario import (
    ControlConfig,
    Scenario,
    SimulatorConfig,
    class_order,
    validate_scenario,
)
from roce_gym.config.senders import (
    SENDER_CONFIGS,
    AlgorithmName,
    DcqcnConfig,
    SenderConfig,
    WindowConfig,
)
from roce_gym.config.settings import BufferConfig, ClassSettings, EcnConfig, Settings
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
from roce_gym.config.user import UserConfig

__all__ = [
    "MAX_PRIORITIES",
    "MAX_RATE_GBPS",
    "MAX_VALUE",
    "MIN_RATE_GBPS",
    "NS_PER_M",
    "SENDER_CONFIGS",
    "AlgorithmName",
    "AllToAll",
    "BufferConfig",
    "ClassSettings",
    "Clos3",
    "ControlConfig",
    "CreditConfig",
    "DcqcnConfig",
    "DctcpConfig",
    "Dumbbell",
    "EcnConfig",
    "FatTree",
    "Flow",
    "FlowList",
    "Incast",
    "Job",
    "LeafSpine",
    "NicConfig",
    "Placement",
    "RailOptimised",
    "RenoConfig",
    "Ring",
    "RingAllReduce",
    "RttConfig",
    "Scenario",
    "SenderConfig",
    "Settings",
    "SimulatorConfig",
    "Star",
    "SwiftConfig",
    "SwitchConfig",
    "Tenant",
    "Topology",
    "TopologyFile",
    "TrafficClass",
    "Triangle",
    "UserConfig",
    "WindowConfig",
    "class_order",
    "sender_settings",
    "validate_scenario",
]
