"""A status of many parts, of which each may fail alone."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg import AsyncConnection

from statesvc.database.queries import queries
from statesvc.health.finding import Finding, Urgency

_SQL: Final = queries("statesvc.health", "status_parts")
T = TypeVar("T")


class StatusParts:
    """Reads parts in transactions of their own, and waits for the lock of another session only
    briefly.
    """

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self.connection: Final = connection
        self.unread: Final[dict[str, str]] = {}
        """Reasons why parts were not read, by name."""

    async def part(self, name: str, read: Callable[[], Awaitable[T]], *, otherwise: T) -> T:
        """Return the result of `read`, or `otherwise` if the server cannot answer.

        Raises psycopg.Error if the connection ended.
        """
        try:
            async with self.connection.transaction():
                await self.connection.execute(_SQL["wait_briefly"])
                return await read()
        except psycopg.ProgrammingError:
            # a defect, or a privilege that this role lacks
            raise
        except psycopg.Error as error:
            if self.connection.closed:
                raise
            self.unread[name] = error.diag.message_primary or type(error).__name__
            return otherwise

    def findings(self) -> list[Finding]:
        """Return a finding for each part that was not read."""
        return [
            Finding(
                urgency=Urgency.HUMAN,
                about=name,
                text=f"not read: {why}; what is shown of it is empty",
            )
            for name, why in self.unread.items()
        ]


class OwnCheck(NamedTuple):
    """A check that reads its own data. `ok_text`: doctor's line if it finds no fault."""

    about: str
    ok_text: str
    find: Callable[[AsyncConnection[Any]], Awaitable[Sequence[Finding]]]
