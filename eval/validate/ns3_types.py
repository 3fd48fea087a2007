"""A scenario of the reference, and what its runs came to."""

from __future__ import annotations

from dataclasses import dataclass

from eval.validate.ns3_params import Parameters
from roce_gym.topology.graph import Network
from roce_gym.workload.flow_file import FlowRecord

FlowPaths = tuple[tuple[int, ...], tuple[int, ...]]
"""Labels of the nodes that the data and the ACKs of a flow pass, both ends included."""


@dataclass(frozen=True)
class Results:
    """What one run of a scenario came to.

    Attributes:
        flows_done: flows wholly acknowledged.
        mean_fct_ns, max_fct_ns: over the flows done; 0 where there are none.
        goodput_gbps: payload that arrived per time from a flow's start to the end of the run, mean
            over flows; 0 if all were done.
        pause_frames: sent by all switches.
        max_queue_bytes: of any egress queue of a switch.
        marked_packets: data packets that arrived with CE.
    """

    flows_done: int
    mean_fct_ns: float
    max_fct_ns: float
    goodput_gbps: float
    pause_frames: float
    max_queue_bytes: float
    marked_packets: float


@dataclass(frozen=True)
class Reference:
    """One scenario with the results of its variants.

    Attributes:
        name: of its folder.
        network: its topology.
        flows: in file order.
        paths: of each flow, node labels of data and ACKs.
        parameters: by variant; only variants that this simulator can run.
        results: by variant.
    """

    name: str
    network: Network
    flows: tuple[FlowRecord, ...]
    paths: tuple[FlowPaths, ...]
    parameters: dict[str, Parameters]
    results: dict[str, Results]
