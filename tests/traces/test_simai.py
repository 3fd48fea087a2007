from pathlib import Path

import pytest
from graph_rows import needs, rows
from trace_writers import SIMAI, SIMAI_HEAD

from roce_gym.errors import TraceFileError
from roce_gym.traces.simai import read_simai
from roce_gym.traces.uniform import Group, Layout

SAMPLE = Path(__file__).resolve().parents[3] / "shared/samples/workloads/simai_micro_allreduce.txt"


def write(folder, text):
    path = folder / "a.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_read(tmp_path):
    """By hand, rank 5 of 8: TP {4, 5}, EP {5, 7}, DP {1, 3, 5, 7}, DP_EP {1, 5}.

    Forward 100, all-reduce, 20 + 200, all-to-all, 10 + 1; backward (norm) 1 + 1, reduce-scatter
    that nobody waits for, 30; moe 300, all-to-all, 10 + 1; embedding 1 + 7, all-gather, 20.
    """
    trace = read_simai(write(tmp_path, SIMAI))
    graph = trace.graph
    assert (trace.format, graph.num_ranks, trace.notes) == ("simai", 8, ())
    each = len(graph.rank) // 8
    assert each == 12
    own = [
        (kind, graph.collectives[peer] if kind == "COLLECTIVE" else time // 1000)
        for rank, kind, peer, _, _, time in rows(graph)
        if rank == 5
    ]
    assert own == [
        ("COMPUTE", 100),
        ("COLLECTIVE", ("all_reduce", "auto", (4, 5), 1000)),
        ("COMPUTE", 20 + 200),
        ("COLLECTIVE", ("all_to_all", "auto", (5, 7), 2000)),
        ("COMPUTE", 10 + 1 + 1 + 1),
        ("COLLECTIVE", ("reduce_scatter", "auto", (1, 5), 4000)),
        ("COMPUTE", 30),
        ("COMPUTE", 300),
        ("COLLECTIVE", ("all_to_all", "auto", (5, 7), 3000)),
        ("COMPUTE", 10 + 1 + 1 + 7),
        ("COLLECTIVE", ("all_gather", "auto", (1, 3, 5, 7), 5000)),
        ("COMPUTE", 20),
    ]
    after = {op - 5 * each: [w - 5 * each for w in ws] for op, ws in needs(graph).items()}
    assert {op: after[op] for op in range(each) if op in after} == {
        **{op: [op - 1] for op in (1, 2, 3, 4, 5, 6, 8, 9, 10, 11)},
        7: [4],
    }


def test_groups__with_pipeline_stages():
    """16 ranks in two stages of 8."""
    layout = Layout(16, tensor=2, expert=2, stages=2)
    assert layout.groups(Group.TP).tolist()[:2] == [[0, 1], [2, 3]]
    assert layout.groups(Group.DP).tolist() == [
        [0, 2, 4, 6],
        [1, 3, 5, 7],
        [8, 10, 12, 14],
        [9, 11, 13, 15],
    ]
    assert layout.groups(Group.EP).tolist()[:3] == [[0, 2], [1, 3], [4, 6]]
    assert layout.groups(Group.DP_EP).tolist()[:3] == [[0, 4], [1, 5], [2, 6]]


def test_read__checkpoints_compute_forward_again(tmp_path):
    """Before the input gradient of layer 2, layers 0 and 1 go forward again."""
    head = SIMAI_HEAD.replace("checkpoints: 0", "checkpoints: 1 0")
    head = head.replace("initiates: 0", "initiates: 1 2").replace("all_gpus: 8", "all_gpus: 4")
    layer = "x -1 {0} ALLREDUCE 1000 1 NONE 0 1 NONE 0 0\n"
    text = f"{head}\n3\n" + "".join(layer.format(10 * (i + 1)) for i in range(3))
    graph = read_simai(write(tmp_path, text)).graph
    times = [row[5] // 1000 for row in rows(graph) if row[0] == 0 and row[1] == "COMPUTE"]
    assert times == [10, 20, 30, 10, 20, 2 + 2 + 2]


def test_read__says_what_is_left_out(tmp_path):
    head = SIMAI_HEAD.replace(" pp: 1", " pp: 2").replace("ga: 1", "ga: 4") + " pp_comm 77"
    text = SIMAI.replace(SIMAI_HEAD, head).replace("ALLREDUCE 1000", "ALLREDUCE 0") + "more\n"
    text = text.replace("norm -1 1 NONE 0", "norm 3 1 NONE 9")
    notes = {
        note.text.split(":")[0]: note.times for note in read_simai(write(tmp_path, text)).notes
    }
    assert notes == {
        "pp_comm": 1,
        "ga": 1,
        "pp": 1,
        "collectives of 0 bytes": 1,
        "dependency of a layer": 1,
        "sizes without a collective": 1,
        "lines after the last layer": 1,
        "collectives in DP_EP groups of 1 rank": 1,
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "MICRO", 1, "'MICRO' is not supported"),
        ("all_gpus: 8", "all_gpus: 6", 1, "all_gpus = 6 is no multiple"),
        ("all_gpus: 8", f"all_gpus: {10**18}", 1, f"all_gpus = {10**18} is not allowed"),
        ("all_gpus: 8", "", 1, "all_gpus is missing"),
        ("ep: 2", "ep: 2 ep: 2", 1, "ep is given twice"),
        ("ep: 2", "ep:", 1, "ep = 'pp:' is not a whole number"),
        ("ep: 2", "xp: 2", 1, "'xp:' is unknown in the head"),
        ("checkpoints: 0", "checkpoints: 1 9", 5, "checkpoint 9 is not a layer"),
        ("initiates: 0", "initiates: 1 0", 1, "no checkpoint at or before layer 0"),
        ("\n3\n", "\n4\n", 5, "the file ends here, where 'name dependency"),
        ("\n3\n", f"\n{10**18}\n", 2, f"layers = {10**18} is not allowed"),
        ("\n3\n", "\n-3\n", 2, "layers = -3 is not allowed"),
        ("ALLREDUCE 1000", "ALLSHUFFLE 1000", 3, "'ALLSHUFFLE' is unknown; allowed: NONE, ALLR"),
        ("ALLREDUCE 1000", f"ALLREDUCE {10**18}", 3, f"bytes = {10**18} is not allowed"),
        ("ALLREDUCE 1000", "ALLREDUCE -1", 3, "bytes = -1 is not allowed"),
        ("embedding -1 100", f"embedding -1 {10**18}", 3, f"compute_ns = {10**18} is not allowed"),
        ("5000 20", "5000", 3, "12 fields expected"),
        ("5000 20", "5000 20 DATA", 3, "12 fields expected"),
        ("norm -1", "norm x", 5, "dependency = 'x' is not a whole number"),
    ],
)
def test_read__faults_name_file_line_and_value(tmp_path, old, new, line, message):
    assert old in SIMAI
    path = write(tmp_path, SIMAI.replace(old, new, 1))
    with pytest.raises(TraceFileError) as caught:
        read_simai(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


def test_read__more_operations_than_allowed(tmp_path):
    """131,072 ranks with more than 64 operations each; nothing of that size is made."""
    head = SIMAI_HEAD.replace("all_gpus: 8", f"all_gpus: {2**17}")
    layer = "x -1 5 ALLREDUCE 9 5 ALLREDUCE 9 5 NONE 0 7\n"
    path = write(tmp_path, f"{head}\n100\n{layer * 100}")
    with pytest.raises(TraceFileError, match=r"line \d+: 131072 ranks have more than 8388608 op"):
        read_simai(path)


def test_read__recomputation_that_does_not_end(tmp_path):
    """20,000 layers, each of which begins again from the first: 200 million steps."""
    n = 5_000
    layers = " ".join(map(str, range(n)))
    head = SIMAI_HEAD.replace("checkpoints: 0", "checkpoints: 1 0")
    head = head.replace("initiates: 0", f"initiates: {n} {layers}")
    path = write(tmp_path, f"{head}\n{n}\n" + "x -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n" * n)
    with pytest.raises(TraceFileError, match="ranks have more than"):
        read_simai(path)


@pytest.mark.skipif(not SAMPLE.is_file(), reason="sample files are absent")
def test_read__sample():
    graph = read_simai(SAMPLE).graph
    assert graph.num_ranks == 8
    assert [(c.operation, c.ranks, c.bytes) for c in graph.collectives] == [
        ("all_reduce", tuple(range(8)), 16_777_216),
        ("all_reduce", tuple(range(8)), 67_108_864),
    ]
