"""API keys for pushes, kept for the time in which the database does not answer.

Each is taken until it expires. A revocation shows when the database answers again.
"""

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import class_row

from statesvc.http.keys.key_store import SQL


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptKey:
    key_id: str
    name: str
    owner: str
    key_hash: str
    scopes: list[str]
    expires_at: datetime | None


@dataclass(slots=True)
class KeptKeys:
    """`is_away`: whether the database is known not to answer."""

    is_away: Callable[[], bool] = lambda: False
    _keys: dict[str, KeptKey] = field(default_factory=dict)

    def keep(self, keys: Iterable[KeptKey]) -> None:
        self._keys = {key.key_id: key for key in keys}

    def find(self, key_id: str, digest: bytes | None) -> KeptKey | None:
        """Return the key; None where it is not known here, or has expired."""
        key = self._keys.get(key_id)
        if key is None or (key.expires_at is not None and key.expires_at <= datetime.now(UTC)):
            return None
        if digest is not None and not hmac.compare_digest(digest.hex(), key.key_hash):
            return None
        return key


async def read_push_keys(connection: AsyncConnection[Any]) -> list[KeptKey]:
    """Return the keys that may push."""
    cursor = connection.cursor(row_factory=class_row(KeptKey))
    return await (await cursor.execute(SQL["push_keys"])).fetchall()
