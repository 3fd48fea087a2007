import pytest
from graph_rows import needs, rows
from trace_writers import GOAL

from roce_gym.errors import TraceFileError
from roce_gym.traces.goal import read_goal
from roce_gym.workload.op_graph import OpKind


def write(folder, text):
    path = folder / "a.goal"
    path.write_text(text, encoding="utf-8")
    return path


def test_read(tmp_path):
    """Positions 7 (begin of b, which c waits for) and others follow the file."""
    trace = read_goal(write(tmp_path, GOAL))
    assert (trace.format, trace.graph.num_ranks) == ("goal", 3)
    assert rows(trace.graph) == [
        (0, "COMPUTE", -1, 0, 0, 100_000),
        (0, "SEND", 1, 10, 7, 0),
        (0, "RECV", 2, 20, 1, 0),
        (1, "RECV", 0, 10, 7, 0),
        (1, "COMPUTE", -1, 0, 0, 5_000),
        (1, "COMPUTE", -1, 0, 0, 6_000),
        (1, "SEND", 2, 1, 0, 0),
        (1, "COMPUTE", -1, 0, 0, 0),
        (2, "SEND", 0, 20, 1, 0),
        (2, "RECV", 1, 1, 0, 0),
    ]
    assert needs(trace.graph) == {1: [0], 4: [7], 5: [7], 7: [3]}


def test_read__says_what_is_left_out(tmp_path):
    text = GOAL.replace("num_ranks 3", "num_ranks 5")
    assert {
        note.text.split(":")[0]: note.times for note in read_goal(write(tmp_path, text)).notes
    } == {
        "cpu numbers other than 0": 2,
        "nic numbers other than 0": 1,
        "messages of 0 bytes": 1,
        "ranks without a schedule": 2,
        "receives posted for more bytes than arrive": 1,
    }


def test_irequires__begin_of_a_message_is_its_end(tmp_path):
    text = "num_ranks 2\nrank 0 {\na: send 5b to 1\nb: calc 1\nb irequires a\n}\n"
    text += "rank 1 {\nrecv 5b from 0\n}"
    graph = read_goal(write(tmp_path, text)).graph
    assert needs(graph) == {0: [2], 1: [2]}  # 2: the mark, which waits for nothing


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("num_ranks 3", "num_ranks 0", 1, "num_ranks = 0 is not allowed"),
        ("num_ranks 3", f"num_ranks {10**18}", 1, f"num_ranks = {10**18} is not allowed"),
        ("num_ranks 3", "", 4, "num_ranks is missing before this rank"),
        ("num_ranks 3", "num_ranks 3\nnum_ranks 3", 2, "num_ranks is given twice"),
        ("rank 1 {", "rank 3 {", 10, "rank = 3 is not allowed; allowed: 0 … 2"),
        ("rank 1 {", "rank 0 {", 10, "rank 0 is given twice"),
        ("calc 100", f"calc {10**18}", 5, f"calc = {10**18} is not allowed"),
        ("calc 100", "calc -1", 5, "calc = -1 is not allowed"),
        ("calc 100", "calc 1e3", 5, "neither an operation nor a dependency"),
        ("calc 100", "calc 100 nic 1", 5, "a calc has no nic"),
        ("10b to 1", f"{10**18}b to 1", 6, f"bytes = {10**18} is not allowed"),
        ("10b to 1", "-10b to 1", 6, "bytes = -10 is not allowed"),
        ("10b to 1", "10b from 1", 6, "a send has no 'from'"),
        ("10b to 1", "10b to 3", 6, "peer = 3 is not allowed; allowed: 0 … 2"),
        ("10b to 1", "10b to 0", 6, "rank 0 sends to itself"),
        ("10b from 0 tag 7", "10b from -1 tag 7", 12, "from any rank or with any tag (-1)"),
        ("10b from 0 tag 7", "10b from 0 tag 8", 6, "operation 1 (SEND) from rank 0 to rank 1"),
        ("10b from 0 tag 7", "9b from 0 tag 7", 6, "SEND of 10 bytes) does not fit operation 3"),
        ("l2 requires l1", "l2 requires l9", 7, "label 'l9' is not known here in rank 0"),
        ("l2 requires l1", "l2 requires l2", 6, "operation 1 of rank 0 can never be done"),
        ("b requires a", "b requires c", 13, "can never be done: 3 operations wait"),
        ("b: calc 5", "a: calc 5", 13, "label 'a' is given twice in rank 1"),
        ("y: recv 8b from 1\n}", "y: recv 8b from 1", 21, "the file ends inside of rank 2"),
        ("rank 2 {", "rank 1 2 {", 19, "'num_ranks', 'rank' or '}' expected"),
        ("two lines */", "two lines", 22, "the file ends inside of a comment"),
        ("// a comment", "}", 3, "'}' without a rank"),
        ("// a comment", "x" * 5000, 3, "has more than 4096 bytes"),
    ],
)
def test_read__faults_name_file_line_and_value(tmp_path, old, new, line, message):
    assert old in GOAL
    path = write(tmp_path, GOAL.replace(old, new, 1))
    with pytest.raises(TraceFileError) as caught:
        read_goal(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


def test_read__no_utf8(tmp_path):
    path = tmp_path / "a.goal"
    path.write_bytes(b"num_ranks 2\nrank 0 {\nl\xff: calc 1\n}\n")
    with pytest.raises(TraceFileError, match=r"line 3: is not UTF-8 text \(byte 2\)"):
        read_goal(path)


def test_read__circle_over_two_ranks(tmp_path):
    """Each rank sends after it has received."""
    body = "r: recv 5b from {0}\ns: send 5b to {0}\ns requires r\n"
    ranks = "".join(f"rank {i} {{\n{body.format(1 - i)}}}\n" for i in range(2))
    with pytest.raises(TraceFileError, match="line 3: operation 0 of rank 0 can never be done: 4"):
        read_goal(write(tmp_path, "num_ranks 2\n" + ranks))


def test_read__k_th_send_belongs_to_k_th_receive(tmp_path):
    text = (
        "num_ranks 2\nrank 0 {\nsend 5b to 1\nsend 6b to 1\nsend 7b to 1\n}\n"
        "rank 1 {\nrecv 5b from 0\nrecv 6b from 0\n}\n"
    )
    with pytest.raises(TraceFileError, match=r"line 5: .* has no RECV: there are 3 SENDs and 2"):
        read_goal(write(tmp_path, text))


def test_kinds_are_those_of_the_graph(tmp_path):
    graph = read_goal(write(tmp_path, GOAL)).graph
    assert graph.kind.max() < OpKind.COLLECTIVE
    assert graph.collectives == ()


@pytest.mark.parametrize("word", ["send 5b to", "recv 5b from"])
def test_a_rank_that_others_name_and_that_has_no_schedule(tmp_path, word):
    path = tmp_path / "a.goal"
    path.write_text(f"num_ranks 4\nrank 0 {{\ncalc 5\n{word} 2\n}}\nrank 1 {{\ncalc 5\n}}\n")
    message = "line 4: rank 0 sends to or receives from rank 2, whose schedule is missing"
    with pytest.raises(TraceFileError, match=message):
        read_goal(path)
