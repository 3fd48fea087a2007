"""What every rank of a pipeline stage does, written down once."""

from __future__ import annotations

from typing import Literal, NamedTuple

from roce_gym.workload.llm.layout import GroupKind
from roce_gym.workload.op_graph import OpKind

Peer = Literal["previous", "next", "storage"]

DATA_CHANNEL, CHECKPOINT_CHANNEL = 0, 1
ACTIVATIONS, GRADIENTS, STATE, ANSWER = 0, 1, 2, 3
"""Tags of messages."""


class Step(NamedTuple):
    """One operation of the program.

    Attributes:
        kind: what it does.
        duration_ps: of COMPUTE.
        bytes, tag, channel: of SEND and RECV; `tag` also of MARK.
        peer: at the other end of SEND and RECV.
        call: number of a COLLECTIVE among those of its group kind; `group` is that kind.
        after: positions of the steps that it waits for.
        is_idle: whether a COMPUTE is time that passes, which is the same on slow ranks.
    """

    kind: OpKind
    after: tuple[int, ...]
    duration_ps: int = 0
    bytes: int = 0
    tag: int = 0
    channel: int = 0
    peer: Peer | None = None
    group: GroupKind | None = None
    call: int = 0
    is_idle: bool = False


class Call(NamedTuple):
    """A collective of the program: each group of its kind does it."""

    operation: str
    bytes: int


class Program:
    """Steps in order, with one stream of computing and any number of streams beside it.

    Computing is gathered until something has to wait for it, so that work between which nothing
    happens is one operation.
    """

    def __init__(self, sizes: dict[GroupKind, int], servers: int = 0) -> None:
        """Starts empty.

        Args:
            sizes: ranks of a group of each kind.
            servers: ranks of storage, after all others.
        """
        self.servers = servers
        self.steps: list[Step] = []
        self.calls: dict[GroupKind, list[Call]] = {}
        self._sizes = sizes
        self._pending_ps = 0.0
        self._wait: tuple[int, ...] = ()
        self._tail: dict[str, int] = {}

    def size(self, group: GroupKind) -> int:
        """Ranks of a group of a kind."""
        return self._sizes[group]

    def work(self, duration_ps: float) -> None:
        """Computing, after all that came before and was waited for."""
        self._pending_ps += duration_ps

    def now(self) -> tuple[int, ...]:
        """What something that begins after the computing so far has to wait for."""
        duration_ps = round(self._pending_ps)
        self._pending_ps = 0.0
        if duration_ps > 0:
            step = Step(OpKind.COMPUTE, self._wait, duration_ps)
            self._wait = (self._append(step),)
        return self._wait

    def wait_for(self, *steps: int | None) -> None:
        """Computing goes on when these are done, too."""
        new = tuple(step for step in steps if step is not None)
        if new:
            self._wait = tuple(dict.fromkeys((*self.now(), *new)))

    def idle(self, duration_ps: float, after: tuple[int, ...]) -> int:
        """Time that passes beside the computing; returns its position."""
        return self._append(Step(OpKind.COMPUTE, after, round(duration_ps), is_idle=True))

    def mark(self, tag: int, after: tuple[int, ...] | None = None) -> None:
        """The moment at which these steps are done; None: the computing so far."""
        waits = self.now() if after is None else after
        self._append(Step(OpKind.MARK, waits, tag=tag))

    def send(self, peer: Peer, size: int, tag: int, channel: int = DATA_CHANNEL) -> None:
        """A message after the computing so far, which goes on at once."""
        after = self.now()
        step = Step(OpKind.SEND, after, bytes=size, tag=tag, channel=channel)
        self._append(step._replace(peer=peer))

    def receive(self, peer: Peer, size: int, tag: int, channel: int = DATA_CHANNEL) -> None:
        """Computing goes on when a message has come; it may come before that."""
        step = Step(OpKind.RECV, (), bytes=size, tag=tag, channel=channel)
        self.wait_for(self._append(step._replace(peer=peer)))

    def collective(self, group: GroupKind, operation: str, size: int) -> None:
        """A collective that computing waits for; nothing in a group of one rank."""
        position = self.beside(group, operation, size, stream=None)
        if position is not None:
            self._wait = (position,)

    def beside(
        self,
        group: GroupKind,
        operation: str,
        size: int,
        stream: str | None,
        after: tuple[int, ...] | None = None,
    ) -> int | None:
        """A collective that computing does not wait for.

        Args:
            group, operation, size: what; `size` as in :class:`CollectiveCall`.
            stream: collectives of one stream go one after the other, as those of a NCCL
                communicator; None: of none.
            after: what it waits for; None: the computing so far.

        Returns:
            Its position; None in a group of one rank, where there is nothing to do.
        """
        if self._sizes[group] == 1 or size == 0:
            return None
        waits = self.now() if after is None else after
        if stream is not None and stream in self._tail:
            waits = (*waits, self._tail[stream])
        calls = self.calls.setdefault(group, [])
        step = Step(OpKind.COLLECTIVE, tuple(dict.fromkeys(waits)))
        position = self._append(step._replace(group=group, call=len(calls)))
        calls.append(Call(operation, size))
        if stream is not None:
            self._tail[stream] = position
        return position

    def wait_for_streams(self) -> None:
        """Computing goes on when all streams are empty."""
        self.wait_for(*self._tail.values())
        self._tail.clear()

    def _append(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1
