"""From an operation graph to what the simulator executes: queue pairs, messages, step machines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roce_gym.config.collectives import ALGORITHMS
from roce_gym.errors import ConfigError
from roce_gym.topology.graph import Network
from roce_gym.workload.graph_check import check, match_messages
from roce_gym.workload.graph_plan import Connection, GraphPlan, GraphWork
from roce_gym.workload.machines import Machine, Sizes, make_machine
from roce_gym.workload.op_graph import CollectiveCall, OpGraph, OpKind
from roce_gym.workload.queue_pairs import JobPlace

MOST_POSTS = 1 << 24
"""Of messages that one event may post: half a gigabyte of records."""


def plan_graph(
    work: GraphWork, place: JobPlace, network: Network
) -> tuple[GraphPlan, list[tuple[int, int]]]:
    """Resolves a graph on the hosts of a tenant.

    Returns:
        The plan, and the (src, dst) hosts of its queue pairs, in the order of its connections.

    Raises:
        ConfigError: the graph cannot be executed, or not on these hosts; names job and operation.
    """
    graph, name = work.graph, place.name
    if graph.num_ranks > len(place.hosts):
        raise ConfigError(
            f"{name}: needs {graph.num_ranks} hosts, a rank each; the tenant has {len(place.hosts)}"
        )
    check(graph, name)
    takes_none = (graph.kind == OpKind.COMPUTE) | (graph.kind == OpKind.MARK)
    if work.compute_ps == 0 and (takes_none & (graph.duration_ps == 0)).all():
        raise ConfigError(f"{name}: a round takes no time; allowed: some computing or sending")
    graph = by_rank(graph)
    mate = match_messages(graph, name)
    server = server_of(place.hosts, network)
    joined = _Connections()
    send_qp = joined.sends(graph)
    machines: dict[tuple[Any, ...], int] = {}
    made: list[Machine] = []
    lane_qp: list[NDArray[np.int32]] = []
    call_machine = np.zeros(len(graph.collectives), np.int32)
    sizes: list[Sizes] = []
    for i, call in enumerate(graph.collectives):
        servers = server[list(call.ranks)]
        algorithm = choose_algorithm(call, servers, f"{name}.collectives.{i}")
        key = (call.ranks, call.operation, algorithm)
        if key not in machines:
            machines[key] = len(made)
            n = len(call.ranks)
            made.append(make_machine(call.operation, algorithm, n, servers, work.options))
            lane_qp.append(joined.lanes(made[-1], call.ranks, algorithm))
        call_machine[i] = machines[key]
        sizes.append(made[call_machine[i]].sizes(call.bytes, work.options))
    plan = GraphPlan(
        graph=graph,
        options=work.options,
        connections=tuple(joined.found),
        send_qp=send_qp,
        mate=mate,
        machines=tuple(made),
        call_machine=call_machine,
        call_sizes=tuple(sizes),
        lane_qp=tuple(lane_qp),
        round_bytes=_round_bytes(graph, made, call_machine, sizes),
        most_posts=_most_posts(graph, made, call_machine, sizes, name),
    )
    return plan, [(place.hosts[c.src], place.hosts[c.dst]) for c in joined.found]


def by_rank(graph: OpGraph) -> OpGraph:
    """The same graph with the operations of rank 0 first, then those of rank 1, and so on."""
    order = np.argsort(graph.rank, kind="stable")
    if (order == np.arange(len(order))).all():
        return graph
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    counts = np.diff(graph.first_dependency)[order]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    old = np.repeat(graph.first_dependency[:-1][order] - first[:-1], counts)
    columns = ("rank", "kind", "peer", "bytes", "tag", "channel", "duration_ps")
    return graph._replace(
        **{column: getattr(graph, column)[order] for column in columns},
        first_dependency=first,
        dependency=place[graph.dependency[old + np.arange(len(old))]],
    )


def server_of(hosts: tuple[int, ...], network: Network) -> NDArray[np.int32]:
    """Shape (len(hosts),): the server of each GPU; without servers, of each host its own."""
    if not network.num_servers:
        return np.arange(len(hosts), dtype=np.int32)
    inside = network.host_link[network.num_places + np.array(hosts)]
    return np.asarray(network.link_dst[inside], np.int32)


def choose_algorithm(call: CollectiveCall, server: NDArray[np.int32], name: str) -> str:
    """The algorithm of a collective; "auto" is resolved.

    Raises:
        ConfigError: the operation is unknown, or the algorithm not for it or for these ranks.
    """
    if call.operation not in ALGORITHMS:
        raise ConfigError(
            f"{name}.operation = {call.operation!r} is not allowed; "
            f"allowed: {', '.join(ALGORITHMS)}"
        )
    known = ALGORITHMS[call.operation]
    counts = np.unique(server, return_counts=True)[1]
    layered = len(counts) > 1 and counts[0] > 1 and bool((counts == counts[0]).all())
    if call.algorithm == "auto":
        return "hierarchical" if layered and "hierarchical" in known else known[0]
    where = f"{name}.algorithm = {call.algorithm!r}"
    if call.algorithm not in known:
        raise ConfigError(
            f"{where} is not allowed with operation {call.operation!r}; "
            f"allowed: auto, {', '.join(known)}"
        )
    if call.algorithm == "hierarchical" and not layered:
        raise ConfigError(
            f"{where} needs two servers with NVLink or more, and equally many ranks, at least two, "
            f"in each; here {len(server)} ranks are in {len(counts)} servers of "
            f"{counts.min()} to {counts.max()}"
        )
    n = len(call.ranks)
    if call.algorithm == "halving_doubling" and call.operation != "all_reduce" and n & (n - 1):
        raise ConfigError(
            f"{where} of {call.operation} needs a power of two of ranks, here are {n}; "
            f"allowed: {', '.join(a for a in known if a != 'halving_doubling')}"
        )
    return call.algorithm


class _Connections:
    """Queue pairs of a job in order of creation; each is found again by what it is for."""

    def __init__(self) -> None:
        self.found: list[Connection] = []
        self._number: dict[Connection, int] = {}
        self._groups: dict[tuple[Any, ...], int] = {}

    def _get(self, connection: Connection) -> int:
        number = self._number.setdefault(connection, len(self.found))
        if number == len(self.found):
            self.found.append(connection)
        return number

    def sends(self, graph: OpGraph) -> NDArray[np.int32]:
        """The queue pair of each SEND."""
        out = np.full(len(graph.rank), -1, np.int32)
        ops = np.flatnonzero(graph.kind == OpKind.SEND)
        columns = (graph.rank[ops], graph.peer[ops], graph.channel[ops])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        out[ops] = [self._get(Connection(-1, *row)) for row in rows]
        return out

    def lanes(self, machine: Machine, ranks: tuple[int, ...], algorithm: str) -> NDArray[np.int32]:
        """The queue pair of each lane; collectives of the same ranks and algorithm share them."""
        group = self._groups.setdefault((ranks, algorithm), len(self._groups))
        rank = np.array(ranks)
        columns = (rank[machine.src], rank[machine.dst], machine.connection)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([self._get(Connection(group, *row)) for row in rows], np.int32)


def _round_bytes(
    graph: OpGraph, machines: list[Machine], call_machine: NDArray[np.int32], sizes: list[Sizes]
) -> int:
    total = int(graph.bytes[graph.kind == OpKind.SEND].sum())
    for number, size in zip(call_machine, sizes, strict=True):
        lanes = np.bincount(machines[number].phase, minlength=len(size)).tolist()
        rows = zip(lanes, size.tolist(), strict=True)
        total += sum(count * messages * message for count, (messages, message, _) in rows)
    return total


def _most_posts(
    graph: OpGraph,
    machines: list[Machine],
    call_machine: NDArray[np.int32],
    sizes: list[Sizes],
    name: str,
) -> int:
    """An event makes one rank go on.

    That may post all that it SENDs in a round, what it has to send in one collective that a message
    came for, and in another one that it begins; and end all that it has, and one MARK.
    """
    sends = np.bincount(graph.rank[graph.kind == OpKind.SEND], minlength=graph.num_ranks)
    ends = np.zeros(graph.num_ranks, np.int64)
    ends[graph.rank[graph.kind == OpKind.MARK]] = 1
    in_one = np.zeros(graph.num_ranks, np.int64)
    for call, number, size in zip(graph.collectives, call_machine, sizes, strict=True):
        machine = machines[number]
        ranks = np.array(call.ranks)
        own = np.bincount(machine.src, size[machine.phase, 0], len(ranks)).astype(np.int64)
        in_one[ranks] = np.maximum(in_one[ranks], own)
        ends[ranks] += 1
    most = int((sends + 2 * in_one + ends).max())
    if most > MOST_POSTS:
        raise ConfigError(
            f"{name}: a rank sends up to {most} messages at once; allowed: {MOST_POSTS}. "
            "Larger chunk_bytes make fewer"
        )
    return max(1, most)
