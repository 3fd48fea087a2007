"""Reader of MSCCL algorithm files in XML.

    <algo nchunksperloop ngpus …>
      <gpu id …>
        <tb id send recv chan>                        thread block; peers, -1: none
          <step s type cnt depid deps …/>             one after the other; depid, deps: waits for
                                                      that step of that thread block, -1: none

The buffer (its size is the user's: the file is for any) has `nchunksperloop` chunks; a step moves
`cnt` of them. Types: s sends; r, rrc receive (and reduce); rcs, rrs, rrcs receive, then send on;
re, cpy, nop are local. Source: msccl_parser.cc of https://github.com/Azure/msccl-executor-nccl and
Cowan et al.: "MSCCLang: Microsoft collective communication language", ASPLOS 2023.

The parser is Expat, fed with any number of levels and refused documents that declare entities.
"""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

from roce_gym.bounded import open_bounded
from roce_gym.topology.lines import FieldReader, shorten
from roce_gym.traces.builder import Builder, Trace
from roce_gym.traces.limits import MAX_CHANNELS, MAX_MESSAGE_BYTES, MAX_RANKS

MAX_XML_BYTES = 2**28
MAX_DEPTH = 16
MAX_CHUNKS = 2**24
_MAX_NUMBER = 2**31 - 1
_PIECE = 2**16

_RECEIVES = {"r", "rrc", "rcs", "rrs", "rrcs"}
_SENDS = {"s", "rcs", "rrs", "rrcs"}
_LOCAL = {"re", "cpy", "nop"}
_REDUCES = {"rrc", "rrs", "rrcs", "re"}
_TYPES = ", ".join(sorted(_RECEIVES | _SENDS | _LOCAL))
_PARENT = {"algo": "", "gpu": "algo", "tb": "gpu", "step": "tb"}


def read_msccl(path: str | Path, buffer_bytes: int) -> Trace:
    """Reads an algorithm.

    Args:
        path: the file.
        buffer_bytes: size of the whole buffer, as NCCL-tests count it.

    Raises:
        TraceFileError: names file, line and value.
    """
    reader = _Reader(path, buffer_bytes)
    parser = expat.ParserCreate(encoding="utf-8")
    reader.attach(parser)
    with open_bounded(path, MAX_XML_BYTES) as file:
        try:
            while piece := file.read(_PIECE):
                parser.Parse(piece, False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            reader.line = error.lineno
            raise reader.fault(f"no XML: {expat.ErrorString(error.code)}") from None
    return reader.finish()


class _Reader(FieldReader):
    """Takes elements one after the other."""

    def __init__(self, path: str | Path, buffer_bytes: int) -> None:
        super().__init__(path)
        self._buffer_bytes = buffer_bytes
        self._build = Builder(0, self.fault)
        self._open: list[str] = []
        self._chunk_bytes = self._chunks = 0
        self._gpus: set[int] = set()
        self._gpu = self._tb = self._send = self._recv = self._channel = -1
        self._last = -1  # operation of the thread block
        self._blocks: set[int] = set()
        self._ways: dict[tuple[str, int, int], int] = {}  # thread block by kind, peer, channel
        self._ends: dict[tuple[int, int], int] = {}  # last operation of each step of the GPU
        self._waits: list[tuple[int, int, int, int]] = []  # operation, block, step, line

    def attach(self, parser: expat.XMLParserType) -> None:
        """Lets the parser call this reader."""
        self._parser = parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype

    def finish(self) -> Trace:
        """What was read."""
        if not self._build.num_ranks:
            raise self.fault("there is no <algo>")
        count = self._build.num_ranks
        if len(self._gpus) < count:
            missing = next(gpu for gpu in range(count) if gpu not in self._gpus)
            raise self.fault(
                f"<gpu id={missing}> is missing; allowed: one for each of 0 … {count - 1}, as "
                f"ngpus = {count}"
            )
        return self._build.finish(self.path, "msccl", lambda _, line: f"{self.path}, line {line}")

    def _doctype(self, *_: object) -> None:
        self.line = self._parser.CurrentLineNumber
        raise self.fault("document type declarations (and entities) are not allowed")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.line = self._parser.CurrentLineNumber
        if len(self._open) >= MAX_DEPTH:
            raise self.fault(f"is nested more than {MAX_DEPTH} levels deep")
        parent = self._open[-1] if self._open else ""
        self._open.append(name)
        if name not in _PARENT:
            if not parent:
                raise self.fault(f"<algo> expected, found <{name[:40]}>")
            self._build.notes.add("elements that are none of algo, gpu, tb, step")
            return
        if parent != _PARENT[name]:
            raise self.fault(f"<{name}> inside of <{parent[:40]}>")
        {"algo": self._algo, "gpu": self._start_gpu, "tb": self._block, "step": self._step}[name](
            attributes
        )

    def _end(self, name: str) -> None:
        self.line = self._parser.CurrentLineNumber
        self._open.pop()
        if name == "gpu":
            self._end_gpu()

    def _number(self, attributes: dict[str, str], name: str, low: int, high: int) -> int:
        if name not in attributes:
            raise self.fault(f"{name} is missing in <{self._open[-1]}>")
        return self.whole(name, attributes[name], low, high)

    def _algo(self, attributes: dict[str, str]) -> None:
        self._build.num_ranks = self._number(attributes, "ngpus", 1, MAX_RANKS)
        self._chunks = self._number(attributes, "nchunksperloop", 1, MAX_CHUNKS)
        self._chunk_bytes = -(-self._buffer_bytes // self._chunks)
        self._build.notes.add(
            f"protocol {shorten(attributes.get('proto', ''))}: a step's data is one message, not "
            "cut up to fit a protocol's buffers"
        )

    def _start_gpu(self, attributes: dict[str, str]) -> None:
        self._gpu = self._number(attributes, "id", 0, self._build.num_ranks - 1)
        if self._gpu in self._gpus:
            raise self.fault(f"gpu {self._gpu} is given twice")
        self._gpus.add(self._gpu)

    def _end_gpu(self) -> None:
        for op, block, step, line in self._waits:
            end = self._ends.get((block, step))
            if end is None:
                self.line = line
                raise self.fault(
                    f"waits for step {step} of thread block {block}, which gpu {self._gpu} does "
                    "not have"
                )
            self._build.depend(op, end)
        self._blocks.clear()
        self._ways.clear()
        self._ends.clear()
        self._waits.clear()

    def _block(self, attributes: dict[str, str]) -> None:
        self._tb = self._number(attributes, "id", 0, _MAX_NUMBER)
        if self._tb in self._blocks:
            raise self.fault(f"thread block {self._tb} of gpu {self._gpu} is given twice")
        self._blocks.add(self._tb)
        last = self._build.num_ranks - 1
        self._send = self._number(attributes, "send", -1, last)
        self._recv = self._number(attributes, "recv", -1, last)
        self._channel = self._number(attributes, "chan", 0, MAX_CHANNELS)
        if self._gpu in (self._send, self._recv):
            raise self.fault(f"gpu {self._gpu} sends to itself")
        self._last = -1

    def _step(self, attributes: dict[str, str]) -> None:
        kind = attributes.get("type", "")
        if kind not in _RECEIVES | _SENDS | _LOCAL:
            raise self.fault(f"type = {shorten(kind)} is not allowed; allowed: {_TYPES}")
        number = self._number(attributes, "s", 0, _MAX_NUMBER)
        if (self._tb, number) in self._ends:
            raise self.fault(f"step {number} of thread block {self._tb} is given twice")
        first = self._operations(kind, attributes)
        block = self._number(attributes, "depid", -1, _MAX_NUMBER)
        step = self._number(attributes, "deps", -1, _MAX_NUMBER)
        if block >= 0:
            self._waits.append((first, block, step, self.line))
        self._ends[self._tb, number] = self._last
        if kind in _REDUCES or kind == "cpy":
            self._build.notes.add("reductions and copies: they take no time")

    def _operations(self, kind: str, attributes: dict[str, str]) -> int:
        """Adds those of a step; the first of them."""
        size, first = 0, len(self._build)
        if kind not in _LOCAL:
            count = self._number(attributes, "cnt", 1, self._chunks)
            size = count * self._chunk_bytes
            if size > MAX_MESSAGE_BYTES:
                raise self.fault(f"moves {size} bytes; allowed: 1 … {MAX_MESSAGE_BYTES}")
        if kind in _RECEIVES:
            self._check_way("recv", self._recv)
            self._add(self._build.receive(self._gpu, self.line, self._recv, size, 0, self._channel))
        if kind in _SENDS:
            self._check_way("send", self._send)
            self._add(self._build.send(self._gpu, self.line, self._send, size, 0, self._channel))
        if kind in _LOCAL:
            self._add(self._build.compute(self._gpu, self.line, 0))
        return first

    def _add(self, op: int) -> None:
        if self._last >= 0:
            self._build.depend(op, self._last)
        self._last = op

    def _check_way(self, word: str, peer: int) -> None:
        """A connection of a channel belongs to one thread block, or its order would be open."""
        if peer < 0:
            raise self.fault(f"thread block {self._tb} has no peer for this: {word} = -1")
        owner = self._ways.setdefault((word, peer, self._channel), self._tb)
        if owner != self._tb:
            raise self.fault(
                f"thread blocks {owner} and {self._tb} of gpu {self._gpu} both {word} with gpu "
                f"{peer} on channel {self._channel}"
            )
