import pytest
from graph_rows import needs, rows
from trace_writers import algo, block, ring, step

from roce_gym.errors import TraceFileError
from roce_gym.traces.msccl import read_msccl

# Rank 0 copies, sends a chunk, then two when block 1 has received; rank 1 passes nothing on.
PAIR = algo(
    [
        block(0, 1, -1, step(0, "cpy"), step(1, "s"), step(2, "s", 2, 1, 0), channel=3),
        block(1, -1, 1, step(0, "rrc")),
    ],
    [
        block(0, -1, 0, step(0, "r"), step(1, "r", 2), channel=3),
        block(1, 0, -1, step(0, "nop", 1, 0, 0), step(1, "s")),
    ],
)


def write(folder, text):
    path = folder / "a.xml"
    path.write_text(text, encoding="utf-8")
    return path


def test_read(tmp_path):
    """A buffer of 2,001 bytes has two chunks of 1,001, rounded up."""
    trace = read_msccl(write(tmp_path, PAIR), 2001)
    graph = trace.graph
    assert rows(graph) == [
        (0, "COMPUTE", -1, 0, 0, 0),
        (0, "SEND", 1, 1001, 0, 0),
        (0, "SEND", 1, 2002, 0, 0),
        (0, "RECV", 1, 1001, 0, 0),
        (1, "RECV", 0, 1001, 0, 0),
        (1, "RECV", 0, 2002, 0, 0),
        (1, "COMPUTE", -1, 0, 0, 0),
        (1, "SEND", 0, 1001, 0, 0),
    ]
    assert graph.channel.tolist() == [0, 3, 3, 0, 3, 3, 0, 0]
    assert needs(graph) == {1: [0], 2: [1, 3], 5: [4], 6: [4], 7: [6]}
    assert [note.times for note in trace.notes] == [1, 2]


def test_read__ring(tmp_path):
    """An all-reduce moves 2 (n - 1) / n of the buffer out of each rank, one chunk a step."""
    graph = read_msccl(write(tmp_path, ring(4)), 4000).graph
    sent = [sum(r[3] for r in rows(graph) if r[:2] == (rank, "SEND")) for rank in range(4)]
    assert sent == [6000] * 4
    assert sum(row[1] == "RECV" for row in rows(graph)) == 4 * 6
    own = {op: ws for op, ws in needs(graph).items() if op < 12}
    assert own == {op: [op - 1] for op in range(1, 12)}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('ngpus="2"', 'ngpus="0"', 1, "ngpus = 0 is not allowed"),
        ('ngpus="2"', f'ngpus="{10**18}"', 1, f"ngpus = {10**18} is not allowed"),
        ('ngpus="2"', "", 1, "ngpus is missing in <algo>"),
        ('nchunksperloop="2"', 'nchunksperloop="0"', 1, "nchunksperloop = 0 is not allowed"),
        ('<gpu id="1"', '<gpu id="2"', 3, "id = 2 is not allowed; allowed: 0 … 1"),
        ('<gpu id="1"', '<gpu id="0"', 3, "gpu 0 is given twice"),
        ('<tb id="1"', '<tb id="0"', 2, "thread block 0 of gpu 0 is given twice"),
        ('send="1"', 'send="0"', 2, "gpu 0 sends to itself"),
        ('send="1"', 'send="7"', 2, "send = 7 is not allowed; allowed: -1 … 1"),
        ('send="1"', 'send="-1"', 2, "thread block 0 has no peer for this: send = -1"),
        ('chan="3"', f'chan="{10**18}"', 2, f"chan = {10**18} is not allowed"),
        ('type="cpy"', 'type="ra"', 2, "type = 'ra' is not allowed; allowed: cpy, nop"),
        ('cnt="2"', 'cnt="3"', 2, "cnt = 3 is not allowed; allowed: 1 … 2"),
        ('cnt="2"', 'cnt="-2"', 2, "cnt = -2 is not allowed"),
        ('depid="1" deps="0"', 'depid="1" deps="1"', 2, "waits for step 1 of thread block 1"),
        ('depid="1" deps="0"', 'depid="0" deps="2"', 2, "can never be done: "),
        ('s="1" type="s"', 's="0" type="s"', 2, "step 0 of thread block 0 is given twice"),
        ('type="rrc"', 'type="nop"', 3, "(SEND) from rank 1 to rank 0, tag 0, channel 0, has no R"),
        ("<gpu", "<tb", 2, "<tb> inside of <algo>"),
        ("<algo", "<graph", 1, "<algo> expected, found <graph>"),
        ("</algo>", "", 5, "no XML: "),
        ("</algo>", "</algo><algo/>", 4, "no XML: "),
        ("<algo", "<!DOCTYPE a [<!ENTITY b 'c'>]><algo", 1, "document type declarations"),
    ],
)
def test_read__faults_name_file_line_and_value(tmp_path, old, new, line, message):
    assert old in PAIR
    path = write(tmp_path, PAIR.replace(old, new, 1))
    with pytest.raises(TraceFileError) as caught:
        read_msccl(path, 2000)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


def test_read__two_blocks_on_one_connection(tmp_path):
    text = algo(
        [block(0, 1, -1, step(0, "s")), block(1, 1, -1, step(0, "s"))],
        [block(0, -1, 0, step(0, "r"), step(1, "r"))],
    )
    with pytest.raises(TraceFileError, match="blocks 0 and 1 of gpu 0 both send with gpu 1"):
        read_msccl(write(tmp_path, text), 2000)


def test_read__a_million_levels(tmp_path):
    path = write(tmp_path, "<algo ngpus='2' nchunksperloop='1'>" + "<x>" * 1_000_000)
    with pytest.raises(TraceFileError, match="line 1: is nested more than 16 levels deep"):
        read_msccl(path, 1)


def test_read__billion_laughs(tmp_path):
    entities = "".join(
        f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' if i else '<!ENTITY l0 "ha">' for i in range(10)
    )
    path = write(tmp_path, f"<!DOCTYPE algo [{entities}]>\n<algo name='&l9;'/>")
    with pytest.raises(TraceFileError, match="line 1: document type declarations"):
        read_msccl(path, 1)


def test_read__message_too_large(tmp_path):
    with pytest.raises(TraceFileError, match=r"line 2: moves \d+ bytes; allowed: 1 … "):
        read_msccl(write(tmp_path, PAIR), 2**51)


def test_read__no_utf8(tmp_path):
    path = tmp_path / "a.xml"
    path.write_bytes(b'<?xml version="1.0" encoding="utf-16"?>\n<algo name="\xff"/>')
    with pytest.raises(TraceFileError, match="line 2: no XML: not well-formed"):
        read_msccl(path, 1)


def test_a_gpu_that_is_missing(tmp_path):
    """Of a ring: the others would wait for it. Of GPUs that do nothing: nobody would notice."""
    whole = (
        ring(4).replace('<gpu id="2"', '<!-- <gpu id="2"').replace('<gpu id="3"', '--><gpu id="3"')
    )
    alone = PAIR.replace('ngpus="2"', 'ngpus="5"')
    for text, gpu, count in ((whole, 2, 4), (alone, 2, 5)):
        message = rf"<gpu id={gpu}> is missing; allowed: one for each of 0 … {count - 1}, as ngpus"
        with pytest.raises(TraceFileError, match=message):
            read_msccl(write(tmp_path, text), 2001)
