"""API keys at rest and their scopes. Only SHA-256 of a key is stored; the key is shown once.

Form: `ss_<key id>_<secret>`; the id is public (logs and lists name it), the secret has 256 random
bits, so that a plain hash is enough. Creating a key is an operator action in the log; so is
revoking it (`statesvc/subscriptions/key_revocation.py`), which ends rights that its owner loses
with it.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from pydantic import Field

from events.entry.kinds import rfc3339
from statesvc.database.queries import queries
from statesvc.log.actions import record_action

SQL: Final = queries("statesvc.http.keys", "key_store")
# Form of an owner's name.
OWNER: Final = re.compile(r"[!-~]{1,100}")
_KEY: Final = re.compile(r"ss_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")


class Scope(StrEnum):
    """A right. `ADMIN` implies all others."""

    INGEST = "ingest"
    READ = "read"
    AUDIT = "audit"
    PII = "pii"
    SUBSCRIPTIONS = "subscriptions"
    OPS = "ops"
    ADMIN = "admin"


def granted(scopes: frozenset[Scope]) -> frozenset[Scope]:
    return frozenset(Scope) if Scope.ADMIN in scopes else scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """A key as lists show it."""

    key_id: str
    name: str
    owner: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: Annotated[datetime | None, Field(description="Within some minutes; null: never.")]
    revoked_at: datetime | None


def key_hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def key_id_of(key: str) -> str | None:
    """Return the public id in a key; None where the text has not the form of a key."""
    match = _KEY.fullmatch(key)
    return None if match is None else match[1]


async def create_key(
    connection: AsyncConnection[Any],
    *,
    name: str,
    scopes: Iterable[Scope],
    created_by: str,
    owner: str | None = None,
    expires_at: datetime | None = None,
    why: str = "",
) -> tuple[str, str]:
    """Make a key; return its id and the key, which cannot be read again. The caller commits.

    `owner` None: the key's own id, so that keys do not share resources by chance.
    """
    listed = sorted(set(scopes))
    if not listed:
        raise ValueError(f"a key needs at least one scope of {', '.join(Scope)}")
    if not name.strip():
        raise ValueError("a key needs a name that says who uses it")
    if owner is not None and not OWNER.fullmatch(owner):
        raise ValueError(
            "an owner is a word of at most 100 printable ASCII characters, without blanks"
        )
    if expires_at is not None:
        ((now,),) = await (await connection.execute(SQL["clock"])).fetchall()
        if expires_at <= now:
            raise ValueError("the time when a key expires must lie ahead")
    key_id = secrets.token_hex(6)
    owner = owner or key_id
    key = f"ss_{key_id}_{secrets.token_urlsafe(32)}"
    async with connection.transaction():
        stored = {
            "key_id": key_id,
            "name": name,
            "owner": owner,
            "key_hash": key_hash(key),
            "scopes": listed,
            "created_by": created_by,
        }
        await connection.execute(SQL["create"], {**stored, "expires_at": expires_at})
        details = {"name": name, "owner": owner, "scopes": ",".join(listed)}
        if expires_at is not None:
            details["expires_at"] = rfc3339(expires_at)
        if why:
            details["why"] = why
        await record_action(
            connection, actor=created_by, verb="key.create", target=f"key:{key_id}", details=details
        )
    return key_id, key


async def owner_called(connection: AsyncConnection[Any], called: str) -> str:
    """Return the owner that a word names: itself, else the owner of the live keys of that name.

    Raises ValueError.
    """
    rows = await (await connection.execute(SQL["owners_called"], {"called": called})).fetchall()
    if len(rows) > 1:
        owners = ", ".join(owner for (owner,) in rows)
        raise ValueError(f"several keys are called {called!r}: name their owner, one of {owners}")
    if not rows and not OWNER.fullmatch(called):
        raise ValueError(f"no live key is called {called!r}: `statesvc keys list` names the owners")
    return str(rows[0][0]) if rows else called


async def list_keys(connection: AsyncConnection[Any]) -> list[StoredKey]:
    """Return all keys, revoked keys too, the newest first."""
    cursor = connection.cursor(row_factory=dict_row)
    await cursor.execute(SQL["list_all"])
    return [
        StoredKey(**{**row, "scopes": tuple(map(Scope, row["scopes"]))})
        for row in await cursor.fetchall()
    ]
