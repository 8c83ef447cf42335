"""The forks of the log: each is the first entry of its epoch, at the stated position.

A transaction reads its epoch under a lock that a fork takes exclusively, so a batch belongs to the
newest epoch whose fork has no higher id.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from psycopg import Connection

from events.entry.kinds import FIRST_EPOCH
from events.merkle.checkpoint import Checkpoint
from events.merkle.node import HASH_BYTES
from statesvc.addons.verify.fault import LogFault
from statesvc.database.queries import queries
from statesvc.log.checkpoints import FORK

_SQL: Final = queries("statesvc.addons.verify", "forks")


@dataclass(frozen=True, slots=True)
class LogFork:
    """One fork, as its entry says: the log went on at `size` entries with this root, and gave up a
    head of `lost_size` entries.
    """

    epoch: int
    index: int
    batch_id: int
    size: int
    root: str
    lost_epoch: int
    lost_size: int
    recorded_at: str
    actor: str
    why: str

    def __str__(self) -> str:
        return (
            f"epoch {self.epoch} began at entry {self.index} on {self.recorded_at} ({self.actor}):"
            f" {self.why}. Given up: what epoch {self.lost_epoch} had from entry {self.size} to"
            f" {self.lost_size - 1} and later"
        )


class SealedForks(NamedTuple):
    forks: tuple[LogFork, ...]
    faults: tuple[LogFault, ...]


def read_forks(connection: Connection[Any]) -> SealedForks:
    """Read the forks in a transaction with one snapshot.

    Forks of archived months stay in the tables.
    """
    forks: list[LogFork] = []
    faults: list[LogFault] = []
    for index, batch_id, canonical in connection.execute(
        _SQL["forks"], {"verb": FORK}, binary=True
    ):
        try:
            forks.append(_fork(index, batch_id, orjson.loads(canonical)))
        except (KeyError, TypeError, ValueError):
            faults.append(
                LogFault(
                    "action",
                    f"batch_id={batch_id}",
                    "canonical",
                    "is no fork of a format that is known here",
                )
            )
    faults += _misplaced(forks)
    begins = {fork.epoch: fork.index for fork in forks} | {FIRST_EPOCH: 0}
    rows = dict(connection.execute(_SQL["epochs"]).fetchall())
    for epoch in sorted(rows.keys() | begins.keys()):
        if rows.get(epoch) != begins.get(epoch):
            faults.append(
                LogFault(
                    "log_epoch", f"epoch={epoch}", "begins", "is not what the forks in the log say"
                )
            )
    return SealedForks(tuple(forks), tuple(faults))


def _fork(index: int, batch_id: int, document: dict[str, Any]) -> LogFork:
    details = document["details"]
    fork = LogFork(
        epoch=details["epoch"],
        index=index,
        batch_id=batch_id,
        size=details["size"],
        root=details["root"],
        lost_epoch=details["lost_epoch"],
        lost_size=details["lost_size"],
        recorded_at=document["recorded_at"],
        actor=document["actor"],
        why=details["why"],
    )
    if (
        document.get("epoch", FIRST_EPOCH) != fork.epoch
        or len(bytes.fromhex(fork.root)) != HASH_BYTES
    ):
        raise ValueError(fork)
    return fork


def _misplaced(forks: Sequence[LogFork]) -> Iterator[LogFault]:
    epoch = FIRST_EPOCH
    for fork in forks:
        row = f"batch_id={fork.batch_id}"
        if fork.index != fork.size:
            yield LogFault(
                "action",
                row,
                "size",
                f"the fork stands at index {fork.index}, and says that the log had {fork.size}"
                " entries",
            )
        if fork.epoch <= epoch:
            yield LogFault(
                "action",
                row,
                "epoch",
                f"the fork of epoch {fork.epoch} stands after that of epoch {epoch}",
            )
        epoch = max(epoch, fork.epoch)


def epoch_at(forks: Sequence[LogFork], size: int) -> int:
    """Return the epoch of a head of this size: the first head of an epoch covers its fork."""
    return max((fork.epoch for fork in forks if fork.index < size), default=FIRST_EPOCH)


def epoch_of_batch(forks: Sequence[LogFork], batch_id: int) -> int:
    return max((fork.epoch for fork in forks if fork.batch_id <= batch_id), default=FIRST_EPOCH)


def given_up(forks: Sequence[LogFork], head: Checkpoint) -> str | None:
    """Return the reason why a stored head cannot belong to this log; None: it can."""
    known = {FIRST_EPOCH, *(fork.epoch for fork in forks)}
    later = [fork for fork in forks if fork.epoch > head.epoch]
    if head.epoch not in known and not later:
        return (
            f"is of epoch {head.epoch}, which this log does not have: it was restored from a backup"
            " older than that fork"
        )
    common = min((fork.size for fork in later), default=head.size) if head.epoch in known else 0
    if head.size <= common:
        return None
    fork = next(each for each in later if each.size == common or head.epoch not in known)
    return (
        f"is of epoch {head.epoch} and has {head.size} entries, of which those from {common} on"
        f" were given up: {fork}"
    )
