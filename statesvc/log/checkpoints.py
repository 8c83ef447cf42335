"""Signed heads as the database holds them, and the epochs of the log: the first, and another for each
fork after a restore that lost entries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from psycopg import AsyncConnection
from psycopg.rows import class_row

from events.entry.kinds import FIRST_EPOCH
from events.merkle.checkpoint import read_checkpoint
from statesvc.database.queries import queries

SQL = queries("statesvc.log", "checkpoints")


@dataclass(frozen=True, slots=True)
class SignedHead:
    """One row. `created_at` is the `sealed_at` of the entries that it added.

    `second_signature`: the lines of the ML-DSA-44 keys; of the newest head and the newest that
    witnesses cosigned. `cosignatures`: the lines of a quorum of witnesses, of the latter alone.
    """

    tree_size: int
    root: bytes
    note: str
    created_at: datetime
    second_signature: str | None = None
    cosignatures: str | None = None

    @property
    def epoch(self) -> int:
        return read_checkpoint(self.note).epoch


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Number of entries that the newest checkpoint covers, and its epoch."""

    tree_size: int
    epoch: int

    @classmethod
    def of(cls, head: SignedHead | None) -> Self:
        """Return the end of the log; of an empty log before the first checkpoint."""
        return cls(0, FIRST_EPOCH) if head is None else cls(head.tree_size, head.epoch)


async def latest_head(connection: AsyncConnection[Any]) -> SignedHead | None:
    """Return the newest head; None before the first seal."""
    cursor = connection.cursor(binary=True, row_factory=class_row(SignedHead))
    return await (await cursor.execute(SQL["latest"])).fetchone()


async def cosigned_head(connection: AsyncConnection[Any]) -> SignedHead | None:
    """Return the newest head that a quorum of witnesses cosigned; None: there is none."""
    cursor = connection.cursor(binary=True, row_factory=class_row(SignedHead))
    return await (await cursor.execute(SQL["cosigned"])).fetchone()


async def covering_head(connection: AsyncConnection[Any], size: int) -> SignedHead | None:
    cursor = connection.cursor(binary=True, row_factory=class_row(SignedHead))
    return await (await cursor.execute(SQL["covering"], {"size": size})).fetchone()


# The verb of the entry that an epoch begins with.
FORK: Final = "log.fork"


@dataclass(frozen=True, slots=True)
class Epochs:
    """`begins`: the index of the first entry of each epoch.

    An epoch that was lost as a whole is not among them.
    """

    begins: Mapping[int, int]

    @property
    def current(self) -> int:
        return max(self.begins)

    def common(self, epoch: int) -> int:
        """Return how many entries an earlier epoch certainly shares with the present epoch.

        0 for an epoch that was lost as a whole.
        """
        return (
            min(begin for each, begin in self.begins.items() if each > epoch)
            if epoch in self.begins
            else 0
        )


async def read_epochs(connection: AsyncConnection[Any]) -> Epochs:
    return Epochs(dict(await (await connection.execute(SQL["epochs"])).fetchall()))
