"""What the oracle keeps: packets, links, buffers, hosts, queue pairs; and its random numbers.

Section numbers are those of `docs/rules.md`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from naive_cc import Hop, Sender

from roce_gym.config import ShaperConfig
from roce_gym.topology.graph import Network
from roce_gym.units import PS_PER_S, ps_per_kib
from roce_gym.workload.plan import QueuePair

EVENT_KINDS = ("ARRIVAL", "TX_DONE", "WAKE", "TIMER")
ARRIVAL, TX_DONE, WAKE, TIMER = range(4)
ECN, LOSS, COMPUTE = range(3)
MASK = 0xFFFFFFFFFFFFFFFF


def uniform(seed: int, stream: int, ident: int, counter: int) -> float:
    """A number in [0, 1) that depends on the four arguments only (SplitMix64 finaliser)."""
    z = seed & MASK
    for value in (stream, ident, counter):
        z = (z + (value + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return (z >> 11) * 2.0**-53


@dataclass(eq=False)
class Packet:
    """A frame; `size` is its wire size, `cls` the internal class it travels in."""

    kind: str  # DATA, ACK, NACK, CNP, PAUSE, RESUME
    cls: int
    size: int
    qp: int = -1
    hop: int = 0  # links before the one it is on or waits for
    seq: int = 0  # of the first byte (DATA), next expected byte (ACK, NACK)
    payload: int = 0
    last: bool = False
    asks: bool = False  # for an ACK of its own
    sent: int = 0  # DATA: when; ACK, NACK: of the data packet it answers; -1: brings nothing back
    queued: int = 0  # ACK, NACK: when it joined the receiver's queue
    waited: int = 0  # ACK, NACK: in that queue
    demand: int | None = None  # DATA: end of what its QP has to send, if receivers grant credits
    limit: int = 0  # DATA: end of what it may send already
    granted: int = 0  # ACK, NACK: end of what the QP may send
    ce: bool = False
    cnp_flag: bool = False
    paused_class: int = -1  # PAUSE and RESUME
    came_on: int = -1  # at a switch: input link
    gap: tuple[int, int] = (0, 0)  # NACK of selective repeat
    hops: list[Hop] = field(default_factory=list)  # what switches wrote into the data packet
    level: float = 0.0  # likewise: of the fullest buffer


class Link:
    """One direction of a cable, with the output queues in front of it (class 0 is PFC)."""

    def __init__(self, network: Network, ident: int, num_classes: int) -> None:
        n = num_classes + 1
        self.id = ident
        self.src, self.dst = int(network.link_src[ident]), int(network.link_dst[ident])
        self.rate = int(network.link_rate_bps[ident])
        self.delay = int(network.link_delay_ps[ident])
        self.loss = float(network.link_loss[ident])
        self.ps_per_kib = ps_per_kib(self.rate)
        self.free = 0
        self.tx_done_pending = False
        self.down = False
        self.in_flight: deque[Packet] = deque()
        self.arrivals = 0
        self.queues: list[deque[Packet]] = [deque() for _ in range(n)]
        self.departed = [0] * n
        self.tx_bytes = 0  # of all classes, PFC included
        self.paused = [False] * n  # does not start packets of the class
        self.told = [False] * n  # what the far end said last, unless it has expired
        self.paused_since = [0] * n  # PAUSE since, or last counted
        self.told_since = [0] * n
        self.expires = [0] * n
        self.hold_timer = [False] * n
        self.last_round_robin = 0
        self.deficit = [0] * n
        self.withheld = [False] * n  # lacks tokens

    def serialisation(self, size: int) -> int:
        return (size * self.ps_per_kib) >> 10

    def queue_bytes(self, cls: int) -> int:
        return sum(packet.size for packet in self.queues[cls])


@dataclass(eq=False)
class Input:
    """Buffer use of one (input link, class) of a switch (4)."""

    link: int
    cls: int
    headroom: int
    alpha_factor: int
    bytes: int = 0
    headroom_used: int = 0
    told_to_pause: bool = False
    last_pause: int = 0
    refresh_timer: bool = False


@dataclass(eq=False)
class Watchdog:
    """Looks at one output queue of a switch (5)."""

    stalled: int = 0
    quiet: int = 0
    heard: bool = False
    storming: bool = False
    timer: bool = False


@dataclass(eq=False)
class Switch:
    """The buffer of a switch: its inputs, and what they use beyond their reserve, by pool."""

    shared: list[int]
    inputs: list[Input] = field(default_factory=list)


class Bucket:
    """Tokens, as the time at which all will be there."""

    def __init__(self, shaper: ShaperConfig | None) -> None:
        self.shaper = shaper
        self.full = 0
        self.pending = False  # an event
        self.held: deque[Qp] = deque()  # of a tenant at a host
        self.granted: Qp | None = None

    def _ps(self, size: int) -> int:
        rate = round(self.shaper.rate_gbps * 10**9)
        return -(-size * 8 * PS_PER_S // rate)

    @property
    def limits(self) -> bool:
        return self.shaper is not None and self.shaper.rate_gbps > 0

    def allowed(self, size: int) -> int:
        if not self.limits:
            return 0
        return self.full + self._ps(size) - self._ps(self.shaper.burst_bytes)

    def spend(self, size: int, t: int) -> None:
        if self.limits:
            self.full = max(self.full, t) + self._ps(size)


@dataclass(eq=False)
class Host:
    """The sending side of a NIC (6)."""

    link: Link
    ready: list[set[int]]  # QPs by class
    last_qp: list[int]  # last served, by class
    paced: set[int] = field(default_factory=set)
    wake_at: int | None = None
    credit_queue: deque[Qp] = field(default_factory=deque)  # at the receiver: QPs that want credit
    coming: int = 0  # bytes granted and not arrived
    next_credit: int = 0
    credit_armed: bool = False


@dataclass(eq=False)
class Message:
    """Bytes posted at once; `end` is the sequence number after the last of them."""

    index: int
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class Window:
    """Bytes that a QP may have outstanding (6); 0: any number."""

    bytes: int
    follows_rate: bool
    least: int


class Qp:
    """Both ends of a queue pair: sender (6, 8) and receiver (7)."""

    def __init__(self, ident: int, plan: QueuePair, cls: int, cc: Sender, window: Window) -> None:
        self.id, self.plan, self.cls, self.cc, self.window = ident, plan, cls, cc, window
        # sender
        self.messages: deque[Message] = deque()  # not wholly acknowledged
        self.posted = self.snd_nxt = self.snd_una = 0
        self.next_send = 0
        self.owed = 0  # bit x 10^-12 to wait for from next_send on
        self.timer_running = False
        self.last_progress = 0
        self.retries = 0
        self.failed = False
        self.cnps = 0
        self.gaps: deque[tuple[int, int]] = deque()  # reported, not filled (selective repeat)
        # receiver
        self.expected = 0
        self.unacked_packets = 0
        self.ce_seen = False
        self.last_nack: tuple[int, int] | None = None  # value, time
        self.last_cnp: int | None = None
        self.held: dict[int, tuple[Packet, int]] = {}  # beyond the first gap, with time of arrival
        self.reported = 0  # gaps below were reported
        self.reorder_timer = False
        self.message_start = 0
        self.nacks = 0
        self.demand = self.granted = self.coming = 0  # credits

    @property
    def rate_bps(self) -> int:
        return self.cc.rate

    @property
    def target_bps(self) -> int:
        return getattr(self.cc, "target", 0)

    @property
    def alpha(self) -> float:
        return getattr(self.cc, "alpha", 0.0)

    @property
    def sendable(self) -> bool:
        return (self.has_bytes and self.has_open_window) or (bool(self.gaps) and not self.failed)

    @property
    def has_bytes(self) -> bool:
        return not self.failed and self.posted > self.snd_nxt

    @property
    def has_open_window(self) -> bool:
        if self.cc.window is not None:  # its algorithm sets one, while it is on
            return not self.cc.config.enabled or self.snd_nxt - self.snd_una < self.cc.window
        size = self.window.bytes
        if self.window.follows_rate:
            size = max(self.window.least, size * self.cc.rate // self.cc.path.line_rate)
        return self.window.bytes == 0 or self.snd_nxt - self.snd_una < size
