"""Creation and numbering of queue pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from roce_gym.errors import TopologyError
from roce_gym.routing import Router, stable_hash, stable_hashes
from roce_gym.topology.graph import Network
from roce_gym.workload.plan import QueuePair

_DATA, _ACK = 0, 1
_PINNED = {(a, b): (a, b) for a in (False, True) for b in (False, True)}  # shared by many


def path_entropy(seed: int, tenant: int, job: int, number: int, direction: int) -> int:
    """What ECMP sees of a queue pair beside its ends.

    Args:
        seed: of the run.
        tenant, job, number: the tenant, its job, the queue pair's number in it.
        direction: 0 for data, 1 for ACKs.
    """
    return stable_hash(seed, tenant, job, number, direction)


@dataclass(frozen=True, slots=True)
class JobPlace:
    """Where a job stands in its scenario.

    Attributes:
        name: field of the scenario, for messages.
        tenant, job: index of the tenant, and of the job in the tenant.
        class_index: of the tenant's traffic class, or of the one that NCCL's settings choose.
        hosts: of the tenant, in rank order.
        first_member_id: see `JobPlan`.
        arrive_ps, leave_ps: of the tenant; -1: it stays.
        timeout_ps, retry_limit: see `QueuePair`.
        carrier: tenant and class as which its checkpoints travel; None: as its own.
    """

    name: str
    tenant: int
    job: int
    class_index: int
    hosts: tuple[int, ...]
    first_member_id: int
    arrive_ps: int = 0
    leave_ps: int = -1
    timeout_ps: int | None = None
    retry_limit: int | None = None
    carrier: tuple[int, int] | None = None


class _Draft(NamedTuple):
    """A queue pair before its paths are found; `given`: those of data and of ACKs, if they are."""

    place: JobPlace
    k: int
    src: int
    dst: int
    given: tuple[tuple[int, ...] | None, tuple[int, ...] | None]


class QueuePairs:
    """Queue pairs in order of creation, each with its ends and paths.

    Two GPUs of one server talk over its NVLink, unless a path is given, which leads over NICs.

    ECMP sees an entropy that depends on the seed, the tenant, the job and the queue pair's number
    in the job, not on what else is planned. Its paths are found for all together, in the end.
    """

    def __init__(self, network: Network, router: Router, seed: int) -> None:
        self.network = network
        self._router = router
        self.seed = seed
        self._created: list[_Draft] = []

    def connect(self, place: JobPlace, pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Creates all queue pairs of a job, from (src, dst) hosts; returns their numbers."""
        return tuple(self.create(place, k, src, dst) for k, (src, dst) in enumerate(pairs))

    def create(
        self,
        place: JobPlace,
        k: int,
        src: int,
        dst: int,
        data_links: tuple[int, ...] | None = None,
        ack_links: tuple[int, ...] | None = None,
    ) -> int:
        """Creates the `k`-th queue pair of a job; paths not given are ECMP's.

        Returns:
            Its number in order of creation.

        Raises:
            TopologyError: there is no path; names the job.
        """
        if data_links is None and ack_links is None:
            src, dst = self.network.ends(src, dst)
        try:
            if data_links is None:
                self._router.require_path(src, dst)
            if ack_links is None:
                self._router.require_path(dst, src)
        except TopologyError as error:
            raise TopologyError(f"{place.name}: {error}") from None
        self._created.append(_Draft(place, k, src, dst, (data_links, ack_links)))
        return len(self._created) - 1

    def in_final_order(self, classes: Sequence[int]) -> tuple[tuple[QueuePair, ...], list[int]]:
        """Queue pairs sorted by (source host, class, creation).

        Args:
            classes: class indices in the simulator's order, see `config.class_order`.

        Returns:
            The queue pairs, and for each in order of creation its final number.
        """
        rank = {class_index: position for position, class_index in enumerate(classes)}
        drafts = self._created
        order = sorted(
            range(len(drafts)),
            key=lambda i: (drafts[i].src, rank[drafts[i].place.class_index]),
        )
        number = [0] * len(order)
        for final, created in enumerate(order):
            number[created] = final
        return self._finished([drafts[i] for i in order]), number

    def _finished(self, drafts: list[_Draft]) -> tuple[QueuePair, ...]:
        first_inside = self.network.num_places
        return tuple(
            QueuePair(
                src,
                dst,
                place.tenant,
                place.class_index,
                data_links,
                ack_links,
                src >= first_inside,
                place.job,
                k,
                _PINNED[given[_DATA] is not None, given[_ACK] is not None],
                place.timeout_ps,
                place.retry_limit,
            )
            for (place, k, src, dst, given), data_links, ack_links in zip(
                drafts, *self._paths(drafts), strict=True
            )
        )

    def _paths(self, drafts: list[_Draft]) -> list[list[Any]]:
        """Paths of all data, and of all ACKs: those given, and for the others ECMP's."""
        both = (_DATA, _ACK)
        paths: list[list[Any]] = [[draft.given[way] for draft in drafts] for way in both]
        wanted = [(way, i) for way in both for i, path in enumerate(paths[way]) if path is None]
        ways = [way for way, _ in wanted]
        flows = [drafts[i] for _, i in wanted]
        entropy = stable_hashes(
            self.seed,
            [flow.place.tenant for flow in flows],
            [flow.place.job for flow in flows],
            [flow.k for flow in flows],
            ways,
        )
        src = [flow.dst if way else flow.src for way, flow in zip(ways, flows, strict=True)]
        dst = [flow.src if way else flow.dst for way, flow in zip(ways, flows, strict=True)]
        found = self._router.ecmp_paths(src, dst, entropy)
        for (way, i), path in zip(wanted, found, strict=True):
            paths[way][i] = path
        return paths
