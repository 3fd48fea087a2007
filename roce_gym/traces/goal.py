"""Reader of GOAL schedules in text, as `txt2bin` of LogGOPSim takes them.

    num_ranks N
    rank R {
      [label:] send BYTESb to PEER [tag T] [cpu C] [nic N]
      [label:] recv BYTESb from PEER [tag T] [cpu C] [nic N]
      [label:] calc NS [cpu C]
      label requires label          (begins when the other one is done)
      label irequires label         (begins when the other one has begun)
    }

Comments are `// …` and `/* … */`. Source of grammar and meaning: txt2bin.re of
https://github.com/spcl/LogGOPSim, and Hoefler, Siebert, Lumsdaine: "Group operation assembly
language: a flexible way to express collective communication", ICPP 2009.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from pathlib import Path

from roce_gym.traces.builder import Builder, Trace
from roce_gym.traces.limits import (
    MAX_DEPENDENCIES,
    MAX_DURATION_PS,
    MAX_MESSAGE_BYTES,
    MAX_RANKS,
    MAX_TAG,
)
from roce_gym.traces.source import Lines
from roce_gym.units import PS_PER_NS

_LABEL = r"[a-zA-Z][a-zA-Z0-9_]{0,63}"
_NUMBER = r"-?[0-9]{1,20}"
_NUM_RANKS = re.compile(rf"num_ranks\s+({_NUMBER})")
_RANK = re.compile(rf"rank\s+({_NUMBER})\s*\{{\s*")
_OP = re.compile(
    rf"(?:({_LABEL})\s*:\s*)?"
    rf"(?:(send|recv)\s+({_NUMBER})\s*b\s+(to|from)\s+({_NUMBER})(?:\s+tag\s+({_NUMBER}))?"
    rf"|calc\s+({_NUMBER}))"
    rf"(?:\s+cpu\s+({_NUMBER}))?(?:\s+nic\s+({_NUMBER}))?"
)
_WAIT = re.compile(rf"({_LABEL})\s+(i?requires)\s+({_LABEL})")
_WAYS = {("send", "to"), ("recv", "from")}


def read_goal(path: str | Path) -> Trace:
    """Reads a schedule.

    Raises:
        TraceFileError: names file, line and value.
    """
    reader = _Reader(path)
    for text in _without_comments(reader.lines):
        reader.take(text)
    return reader.finish()


class _Reader:
    """Takes lines one after the other."""

    def __init__(self, path: str | Path) -> None:
        self.lines = Lines(path)
        self.build = Builder(0, self.lines.fault)
        self.rank = -1
        self.seen: set[int] = set()
        self.named: dict[int, tuple[int, int]] = {}  # peers: line and rank that first name them
        self.labels: dict[str, int] = {}
        self.waits = array("q")  # of this rank: who, for whom, for its begin only, …

    def take(self, text: str) -> None:
        """One line, which may hold the head of a rank and more."""
        while text:
            if self.rank >= 0 and text[0] != "}" and not text.startswith("rank "):
                self._statement(text)
                return
            if text[0] == "}":
                self._close()
                text = text[1:].strip()
            elif head := _RANK.match(text):
                self._open(head[1])
                text = text[head.end() :]
            elif count := _NUM_RANKS.fullmatch(text):
                self._set_ranks(count[1])
                return
            else:
                self._statement(text)
                return

    def finish(self) -> Trace:
        """What was read."""
        if self.rank >= 0:
            raise self.lines.fault(f"the file ends inside of rank {self.rank}")
        if not self.build.num_ranks:
            raise self.lines.fault("num_ranks is missing")
        for peer, (line, rank) in self.named.items():
            if peer not in self.seen:
                self.lines.line = line
                raise self.lines.fault(
                    f"rank {rank} sends to or receives from rank {peer}, whose schedule is missing"
                )
        self.build.notes.add(
            "ranks without a schedule: they do nothing", self.build.num_ranks - len(self.seen)
        )
        return self.build.finish(
            self.lines.path, "goal", lambda _, line: f"{self.lines.path}, line {line}"
        )

    def _set_ranks(self, text: str) -> None:
        if self.build.num_ranks:
            raise self.lines.fault("num_ranks is given twice")
        self.build.num_ranks = self.lines.whole("num_ranks", text, 1, MAX_RANKS)

    def _open(self, text: str) -> None:
        if not self.build.num_ranks:
            raise self.lines.fault("num_ranks is missing before this rank")
        if self.rank >= 0:
            raise self.lines.fault(f"rank {text} begins inside of rank {self.rank}")
        self.rank = self.lines.whole("rank", text, 0, self.build.num_ranks - 1)
        if self.rank in self.seen:
            raise self.lines.fault(f"rank {self.rank} is given twice")
        self.seen.add(self.rank)

    def _statement(self, text: str) -> None:
        if self.rank < 0:
            raise self.lines.fault(f"'num_ranks', 'rank' or '}}' expected, found {text[:40]!r}")
        if found := _OP.fullmatch(text):
            self._operation(found)
        elif wait := _WAIT.fullmatch(text):
            self._wait(*wait.groups())
        else:
            raise self.lines.fault(f"neither an operation nor a dependency: {text[:40]!r}")

    def _operation(self, found: re.Match[str]) -> None:
        label, word, size, way, peer, tag, ns, cpu, nic = found.groups()
        if word is None:
            op = self._calc(ns, nic)
        else:
            op = self._message(word, size, way, peer, tag)
        if label is not None and self.labels.setdefault(label, op) != op:
            raise self.lines.fault(f"label {label[:40]!r} is given twice in rank {self.rank}")
        if cpu is not None and int(cpu):
            self.build.notes.add("cpu numbers other than 0: a rank's operations run side by side")
        if nic is not None and int(nic):
            self.build.notes.add("nic numbers other than 0: a rank has one NIC")

    def _calc(self, ns: str, nic: str | None) -> int:
        if nic is not None:
            raise self.lines.fault("a calc has no nic")
        time = self.lines.whole("calc", ns, 0, MAX_DURATION_PS // PS_PER_NS)
        return self.build.compute(self.rank, self.lines.line, time * PS_PER_NS)

    def _message(self, word: str, size: str, way: str, peer: str, tag: str | None) -> int:
        lines = self.lines
        if (word, way) not in _WAYS:
            raise lines.fault(f"a {word} has no {way!r}")
        if peer == "-1" or tag == "-1":
            raise lines.fault(
                "receives from any rank or with any tag (-1) are not supported; allowed: those "
                "that name both"
            )
        other = lines.whole("peer", peer, 0, self.build.num_ranks - 1)
        if other == self.rank:
            raise lines.fault(f"rank {other} sends to itself")
        self.named.setdefault(other, (lines.line, self.rank))
        add = self.build.send if word == "send" else self.build.receive
        return add(
            self.rank,
            lines.line,
            other,
            lines.whole("bytes", size, 0, MAX_MESSAGE_BYTES),
            lines.whole("tag", tag or "0", 0, MAX_TAG),
        )

    def _wait(self, who: str, word: str, on: str) -> None:
        """A dependency between labels that are known, as `txt2bin` wants them."""
        if len(self.waits) >= 3 * MAX_DEPENDENCIES:
            raise self.lines.fault(f"more than {MAX_DEPENDENCIES} dependencies")
        self.waits.extend((self._label(who), self._label(on), word == "irequires"))

    def _label(self, label: str) -> int:
        op = self.labels.get(label)
        if op is None:
            raise self.lines.fault(f"label {label!r} is not known here in rank {self.rank}")
        return op

    def _close(self) -> None:
        """Ends a rank. What begins together with another waits for the same as that one."""
        if self.rank < 0:
            raise self.lines.fault("'}' without a rank")
        waits = zip(self.waits[::3], self.waits[1::3], self.waits[2::3], strict=True)
        begun = {on for _, on, is_begin in waits if is_begin}
        begin = {op: self.build.compute(self.rank, self.lines.line, 0) for op in sorted(begun)}
        for op, mark in begin.items():
            self.build.depend(op, mark)
        waits = zip(self.waits[::3], self.waits[1::3], self.waits[2::3], strict=True)
        for who, on, is_begin in waits:
            self.build.depend(begin.get(who, who), begin[on] if is_begin else on)
        self.rank = -1
        self.labels.clear()
        self.waits = array("q")


def _without_comments(lines: Lines) -> Iterator[str]:
    inside = False
    for text in lines:
        if inside or "/" in text:
            text, inside = _strip(text, inside)
        if text:
            yield text
    if inside:
        raise lines.fault("the file ends inside of a comment")


def _strip(text: str, inside: bool) -> tuple[str, bool]:
    """A line without comments, and whether one goes on in the next."""
    kept = []
    while text:
        if inside:
            _, end, text = text.partition("*/")
            inside = not end
            continue
        found = re.search(r"//|/\*", text)
        if found is None:
            kept.append(text)
            break
        kept.append(text[: found.start()])
        inside = found[0] == "/*"
        text = text[found.end() :] if inside else ""
    return " ".join(kept).strip(), inside
