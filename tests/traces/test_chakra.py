import json
from pathlib import Path

import pytest
from graph_rows import needs, rows
from trace_writers import METADATA, field, message_file, node, varint, write_chakra

from roce_gym.errors import TraceFileError
from roce_gym.traces import read_trace
from roce_gym.traces.chakra import read_chakra

SAMPLES = Path(__file__).resolve().parents[3] / "shared/samples/workloads"
COMP, SEND, RECV, COLL, METADATA_NODE = 4, 5, 6, 7, 1


def collective(node_id, comm_type, size, **more):
    return node(node_id, COLL, is_cpu_op=False, comm_type=comm_type, comm_size=size, **more)


def test_read(tmp_path):
    """Node 3 waits for nodes that come later in the file."""
    zero = [
        node(3, SEND, [7, 5], comm_dst=1, comm_size=100, comm_tag=9),
        node(5, COMP, duration_us=12),
        node(7, RECV, [5], comm_src=1, comm_size=50),
    ]
    one = [
        node(2**64 - 1, SEND, comm_src=1, comm_dst=0, comm_size=50),
        node(1, RECV, [2**64 - 1], comm_src=0, comm_size=100, comm_tag=9),
    ]
    trace = read_chakra(write_chakra(tmp_path / "t", zero, one))
    assert rows(trace.graph) == [
        (0, "SEND", 1, 100, 9, 0),
        (0, "COMPUTE", -1, 0, 0, 12_000_000),
        (0, "RECV", 1, 50, 0, 0),
        (1, "SEND", 0, 50, 0, 0),
        (1, "RECV", 0, 100, 9, 0),
    ]
    assert needs(trace.graph) == {0: [1, 2], 2: [1], 4: [3]}
    assert trace.notes == ()


def test_read__unpacked_dependencies(tmp_path):
    """As proto2 writes them: a field each; data and control."""
    third = node(3, COMP, duration_us=1) + field(4, 1) + field(5, 2)
    folder = write_chakra(
        tmp_path / "t", [node(1, COMP, duration_us=1), node(2, COMP, duration_us=1), third]
    )
    assert needs(read_chakra(folder).graph) == {2: [0, 1]}


@pytest.mark.parametrize(
    ("comm_type", "operation", "size"),
    [
        (0, "all_reduce", 1000),
        (1, "broadcast", 1000),
        (2, "all_gather", 3000),
        (5, "broadcast", 1000),
        (6, "all_to_all", 1000),
        (7, "reduce_scatter", 1000),
        (8, "reduce_scatter", 1000),
        (9, "all_reduce", 1000),
    ],
)
def test_collectives(tmp_path, comm_type, operation, size):
    ranks = [[collective(0, comm_type, 1000)] for _ in range(3)]
    (call,) = read_chakra(write_chakra(tmp_path / "t", *ranks)).graph.collectives
    assert call == (operation, "auto", (0, 1, 2), size)


def test_process_groups(tmp_path):
    """PyTorch's, in metadata; the k-th collectives of a group belong together, whatever its name.

    Ranks 0 and 2 do two of their own, with one of all ranks between.
    """
    groups = json.dumps([{"pg_name": "0", "ranks": []}, {"pg_name": "5", "ranks": [2, 0]}])
    head = node(0, METADATA_NODE, inputs=f"['{groups}']")
    pair = [
        head,
        collective(1, 0, 111, pg_name="5"),
        collective(2, 0, 222, pg_name="0"),
        collective(3, 6, 333, pg_name="5", root_rank=0),
    ]
    trace = read_chakra(write_chakra(tmp_path / "t", pair, [head, collective(2, 0, 222)], pair))
    assert trace.graph.collectives == (
        ("all_reduce", "auto", (2, 0), 111),
        ("all_reduce", "auto", (0, 1, 2), 222),
        ("all_to_all", "auto", (0, 2), 333),
    )
    assert [row[2] for row in rows(trace.graph) if row[1] == "COLLECTIVE"] == [0, 1, 2, 1, 0, 1, 2]


def test_groups_from_a_file(tmp_path):
    path = tmp_path / "groups.json"
    path.write_text('{"7": [1, 2]}')
    ranks = [[node(0, COMP, duration_us=1)], *[[collective(0, 2, 10, pg_name="7")]] * 2]
    folder = write_chakra(tmp_path / "t", *ranks)
    assert read_chakra(folder, path).graph.collectives == (("all_gather", "auto", (1, 2), 20),)
    for text, message in [
        ("[" * 100_000, "no JSON: "),
        ("\xff", "no JSON: "),
        ("[]", "lists of ranks by name"),
        ('{"a": [1.5]}', "group 'a' is no list of ranks"),
        ('{"a": [0, 3]}', "process group 'a' is not allowed"),
    ]:
        path.write_text(text, encoding="latin-1")
        with pytest.raises(TraceFileError, match=message):
            read_chakra(folder, path)


def test_read__says_what_is_left_out(tmp_path):
    zero = [
        node(0, METADATA_NODE),
        node(1, 2, duration_us=3),
        node(2, 3, duration_us=4),
        node(3, COMP, num_ops=10**9),
        node(4, 77),
        collective(5, 1, 0, comm_priority=3),
        collective(6, 0, 100),
    ]
    one = [collective(0, 1, 0), collective(1, 0, 150)]
    folder = write_chakra(tmp_path / "t", zero, one)
    (folder / "trace.1.et").write_bytes(message_file(field(1, "0.0.3"), *one))
    trace = read_chakra(folder)
    assert [(note.times, note.text.split(":")[0]) for note in trace.notes] == [
        (1, "nodes of type METADATA"),
        (1, "memory loads"),
        (1, "memory stores"),
        (1, "computations without a duration (at most operations to count)"),
        (1, "nodes of type 77"),
        (1, "messages and collectives with other attributes than are used"),
        (2, "reduces"),
        (2, "collectives of 0 bytes"),
        (1, "files that do not say that their version is 0.0.4"),
        (1, "collectives of unequal sizes"),
    ]
    assert [call.bytes for call in trace.graph.collectives] == [4, 150]


def broken(folder, content):
    folder.mkdir()
    (folder / "x.0.et").write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("content", "record", "message"),
    [
        (b"", 1, "the file is empty"),
        (b"\x80", 1, "the file ends inside of its length"),
        (b"\x80" * 11, 1, "its length is a number of more than 10 bytes"),
        (varint(10**18), 1, f"its length is {10**18} bytes; allowed: 0 … "),
        (b"\x05abc", 1, "the file ends after 3 of its 5 bytes"),
        (message_file(METADATA, b"\x08"), 2, "ends inside of a number"),
        (message_file(METADATA, b"\x00"), 2, "has a field with number 0"),
        (message_file(METADATA, b"\x0b"), 2, "has a field of wire type 3"),
        (message_file(METADATA, field(10, b"\x08" + b"\xff" * 11)), 2, "number of more than 10"),
        (message_file(METADATA, b"\x12\x50a"), 2, "has a field of 80 bytes, but only 1 follow"),
        (message_file(METADATA, field(1, "x")), 2, "id is no whole number"),
        (message_file(METADATA, field(10, field(1, b"\xff") + field(9, 1))), 2, "not UTF-8"),
        (message_file(METADATA, node(1, COMP), node(1, COMP)), 3, "node id 1 is given twice"),
        (message_file(METADATA, node(1, COMP, [2])), 2, "depends on node 2, which the file does"),
        (message_file(METADATA, node(1, COMP, [1])), 2, "operation 0 of rank 0 can never be done"),
        (message_file(METADATA, node(1, COMP, duration_us=10**18)), 2, "duration_micros = 1000000"),
        (message_file(METADATA, node(1, SEND, comm_dst=1)), 2, "attribute comm_size is missing"),
        (
            message_file(METADATA, node(1, SEND, comm_size=10**18, comm_dst=1)),
            2,
            f"comm_size = {10**18} is not allowed",
        ),
        (message_file(METADATA, node(1, RECV, comm_size=-5, comm_src=1)), 2, "comm_size = -5"),
        (message_file(METADATA, node(1, RECV, comm_size="5", comm_src=1)), 2, "comm_size = '5'"),
        (message_file(METADATA, node(1, RECV, comm_size=5, comm_src=9)), 2, "comm_src = 9"),
        (message_file(METADATA, node(1, RECV, comm_size=5, comm_src=0)), 2, "sends to itself"),
        (
            message_file(METADATA, node(1, SEND, comm_size=5, comm_src=1, comm_dst=1)),
            2,
            "comm_src = 1 is not allowed; allowed: 0, or none",
        ),
        (message_file(METADATA, collective(1, 3, 5)), 2, "comm_type = 3 (GATHER) is not supported"),
        (message_file(METADATA, collective(1, 10, 5)), 2, "comm_type = 10 is not allowed"),
        (message_file(METADATA, collective(1, 0, 5, pg_name="8")), 2, "pg_name = '8' is unknown"),
        (
            message_file(METADATA, collective(1, 0, 5)),
            2,
            "needs one operation of each",
        ),
        (
            message_file(METADATA, node(1, SEND, comm_size=5, comm_dst=1)),
            2,
            "(SEND) from rank 0 to rank 1, tag 0, channel 0, has no RECV",
        ),
    ],
)
def test_read__faults_name_file_record_and_value(tmp_path, content, record, message):
    folder = broken(tmp_path / "t", content)
    (folder / "x.1.et").write_bytes(message_file(METADATA, node(1, COMP, duration_us=1)))
    with pytest.raises(TraceFileError) as caught:
        read_chakra(folder)
    assert str(caught.value).startswith(f"{folder / 'x.0.et'}, record {record}: ")
    assert message in str(caught.value)


def test_read__collectives_that_do_not_agree(tmp_path):
    folder = write_chakra(tmp_path / "t", [collective(0, 0, 5)], [collective(0, 6, 5)])
    with pytest.raises(TraceFileError, match=r"1\.et, record 2: is collective number 1 .* all_to_"):
        read_chakra(folder)


def test_files(tmp_path):
    """A folder, one of the files, or how they begin."""
    ranks = [[collective(0, 0, 100)], [collective(0, 0, 100)]]
    folder = write_chakra(tmp_path / "t", *ranks, prefix="first")
    for path in (folder, folder / "first.1.et", folder / "first"):
        assert read_trace(path).graph.num_ranks == 2
    write_chakra(folder, *ranks, prefix="second")
    assert read_trace(folder / "second").graph.num_ranks == 2
    with pytest.raises(TraceFileError, match="several traces; give one of first, second"):
        read_trace(folder)
    (folder / "first.0.et").unlink()
    missing = r"has files of 1 ranks, up to rank 1, but none of rank 0: first\.0\.et is missing"
    with pytest.raises(TraceFileError, match=missing):
        read_trace(folder / "first.1.et")
    with pytest.raises(TraceFileError, match=r"no file PREFIX\.RANK\.et"):
        read_chakra(folder / "third")
    (folder / "second.01.et").write_bytes(b"")
    with pytest.raises(TraceFileError, match="rank 1 has two files"):
        read_chakra(folder / "second")
    (folder / "second.01.et").unlink()
    for rank in ("-1", "1000000000000"):
        wrong = folder / f"second.{rank}.et"
        wrong.write_bytes(b"")
        with pytest.raises(TraceFileError, match=f"rank {rank} is not allowed; allowed: 0 … "):
            read_chakra(folder / "second")
        wrong.unlink()


@pytest.mark.parametrize("names", [[0, 1, 3], ["00", "01", "03"]])
def test_files__a_gap(tmp_path, names):
    for name in names:
        (tmp_path / f"x.{name}.et").write_bytes(message_file(METADATA))
    missing = "02" if names[0] == "00" else "2"
    for path in (tmp_path, tmp_path / "x", tmp_path / f"x.{names[0]}.et"):
        message = rf"up to rank 3, but none of rank 2: x\.{missing}\.et is missing"
        with pytest.raises(TraceFileError, match=message):
            read_chakra(path)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (node(1, SEND, comm_size=5, comm_dst=2), "record 2: comm_dst = 2 is not allowed"),
        (node(1, RECV, comm_size=5, comm_src=2), "record 2: comm_src = 2 is not allowed"),
        (collective(1, 5, 5, root_rank=2), "record 2: root_rank = 2 is not allowed"),
        (
            node(0, METADATA_NODE, inputs=f"['{json.dumps([{'pg_name': '0', 'ranks': [0, 2]}])}']"),
            "process group '0' is not allowed",
        ),
        (
            node(
                0,
                METADATA_NODE,
                inputs=f"['{json.dumps([{'pg_name': '0', 'ranks': [], 'group_size': 3}])}']",
            ),
            "record 2: process group '0' has 3 ranks",
        ),
    ],
)
def test_a_missing_last_file_is_known_by_what_the_others_say(tmp_path, first, message):
    folder = write_chakra(tmp_path / "t", [first], [node(1, COMP, duration_us=1)])
    with pytest.raises(TraceFileError, match=f"{message}.*; of rank 2 the file trace.2.et is miss"):
        read_chakra(folder)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="sample files are absent")
@pytest.mark.parametrize("name", ["all_gather", "all_reduce", "all_to_all", "reduce_scatter"])
def test_read__samples(name):
    """1 MiB that each of 4 ranks puts in."""
    trace = read_chakra(SAMPLES / f"chakra_{name}_4npus")
    size = 2**20 * (4 if name == "all_gather" else 1)
    assert trace.graph.collectives == ((name, "auto", (0, 1, 2, 3), size),)
    assert trace.notes == ()
