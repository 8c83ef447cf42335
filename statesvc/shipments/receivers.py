"""Receivers of notifications, as people call them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from psycopg import AsyncConnection

from statesvc.database.queries import queries

_SQL = queries("statesvc.shipments", "receivers")


@dataclass(frozen=True, slots=True)
class Receiver:
    name: str | None
    host: str

    @property
    def label(self) -> str:
        """The name; without a name, the host."""
        return self.name or self.host


async def read_receivers(
    connection: AsyncConnection[Any], subscription_ids: Iterable[str]
) -> dict[str, Receiver]:
    """Read the receivers by subscription id. A deleted subscription keeps its name."""
    cursor = await connection.execute(
        _SQL["receivers"], {"subscription_ids": sorted(set(subscription_ids))}
    )
    return {
        subscription_id: Receiver(name, urlsplit(url).hostname or "")
        for subscription_id, url, name in await cursor.fetchall()
    }
