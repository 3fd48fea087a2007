"""Operation graphs as plain data."""

from roce_gym.workload.op_graph import OpKind


def rows(graph):
    """(rank, kind, peer, bytes, tag, duration_ps) of each operation."""
    columns = (graph.rank, graph.kind, graph.peer, graph.bytes, graph.tag, graph.duration_ps)
    return [
        (rank, OpKind(kind).name, *rest)
        for rank, kind, *rest in zip(*(c.tolist() for c in columns), strict=True)
    ]


def needs(graph):
    """What each operation waits for, of those that wait."""
    ends = graph.first_dependency.tolist()
    found = {
        op: sorted(graph.dependency[ends[op] : ends[op + 1]].tolist())
        for op in range(len(graph.rank))
    }
    return {op: waits for op, waits in found.items() if waits}
