"""The epochs of the log: the first, and another for each fork after a restore that lost entries."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL: Final = queries("statesvc.log", "epochs")
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
    return Epochs(dict(await (await connection.execute(_SQL["epochs"])).fetchall()))
