"""Small writers of the formats, independent of the readers."""


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A field of a message: a number, or bytes or text with a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    """A Chakra attribute: truth value, int64 or string."""
    number = 27 if isinstance(value, bool) else 7 if isinstance(value, int) else 29
    number = 9 if number == 7 else number
    return field(1, name) + field(number, value)


def node(node_id, kind, needs=(), duration_us=0, inputs=None, **attributes):
    """A Chakra node; control dependencies are packed, as proto3 does."""
    data = field(1, node_id) + field(2, f"node {node_id}") + field(3, kind)
    if needs:
        data += field(4, b"".join(map(varint, needs)))
    if duration_us:
        data += field(7, duration_us)
    if inputs is not None:
        data += field(8, field(1, inputs))
    for name, value in attributes.items():
        data += field(10, attribute(name, value))
    return data


def message_file(*messages):
    """Messages, each after its length."""
    return b"".join(varint(len(m)) + m for m in messages)


METADATA = field(1, "0.0.4")


def write_chakra(folder, *ranks, prefix="trace"):
    """A trace; `ranks` are lists of nodes. Returns the folder."""
    folder.mkdir(exist_ok=True)
    for rank, nodes in enumerate(ranks):
        (folder / f"{prefix}.{rank}.et").write_bytes(message_file(METADATA, *nodes))
    return folder


def step(number, kind, count=1, depid=-1, deps=-1):
    """A step of MSCCL."""
    return (
        f'<step s="{number}" type="{kind}" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" '
        f'cnt="{count}" depid="{depid}" deps="{deps}" hasdep="0"/>'
    )


def block(number, send, recv, *steps, channel=0):
    """A thread block of MSCCL."""
    return f'<tb id="{number}" send="{send}" recv="{recv}" chan="{channel}">{"".join(steps)}</tb>'


def algo(*gpus, chunks=2):
    """An MSCCL algorithm; `gpus` are lists of thread blocks."""
    inside = "\n".join(
        f'<gpu id="{rank}" i_chunks="2" o_chunks="0" s_chunks="0">{"".join(blocks)}</gpu>'
        for rank, blocks in enumerate(gpus)
    )
    return (
        f'<algo name="a" proto="Simple" nchannels="1" nchunksperloop="{chunks}" '
        f'ngpus="{len(gpus)}" coll="allreduce" inplace="1">\n{inside}\n</algo>\n'
    )


def ring(ranks):
    """An all-reduce ring with a chunk for each rank."""
    gpus = []
    for rank in range(ranks):
        kinds = ["s"] + ["rrs"] * (ranks - 2) + ["rrcs"] + ["rcs"] * (ranks - 2) + ["r"]
        steps = [step(i, kind) for i, kind in enumerate(kinds)]
        gpus.append([block(0, (rank + 1) % ranks, (rank - 1) % ranks, *steps)])
    return algo(*gpus, chunks=ranks)


GOAL = """\
num_ranks 3

// a comment
rank 0 {
l1: calc 100
l2: send 10b to 1 tag 7
l2 requires l1
l3: recv 20b from 2 tag 1 cpu 1 nic 2
}
rank 1 { /* over
two lines */
a: recv 10b from 0 tag 7
b: calc 5 cpu 1
c: calc 6
b requires a
c irequires b
send 0b to 2
}
rank 2 {
x: send 20b to 0 tag 1
y: recv 8b from 1
}
"""

SIMAI_HEAD = (
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 "
    "all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0"
)

SIMAI = f"""{SIMAI_HEAD}
3
embedding -1 100 ALLREDUCE 1000 1 NONE 0 7 ALLGATHER 5000 20
moe\t-1\t200\tALLTOALL_EP\t2000\t300\tALLTOALL_EP\t3000\t1\tNONE\t0\t10
norm -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER_DP_EP 4000 30
"""
