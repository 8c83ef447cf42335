"""Messages of another broker into the inbox, or whole to the dead letters: a transaction a batch.

The receipt that recognises a carrier's retry recognises these too: its digest is of the task's id
and arguments, and it is retained until long after the ETA. So a batch may be stored again, by any
process, without effect, and another task that reuses an id is another message.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
from psycopg import AsyncConnection

from events.crypto.keyring import DIGEST_BYTES, Keyring
from events.errors import Cause
from statesvc.addons.shovel.source_message import Taken
from statesvc.addons.shovel.task_mapping import Mapped, Unmapped, identities
from statesvc.bodies.sealed_message import SealedMessage, put_columns, seal_message
from statesvc.database.queries import queries

# Days after its ETA, or its transfer, for which a message is recognised.
RECEIPT_DAYS: Final = 90
# The carrier of dead letters without a carrier. No carrier may have this name.
LANE: Final = "shovel"
_ETA_MAX: Final = datetime(9000, 1, 1, tzinfo=UTC)

_SQL = queries("statesvc.addons.shovel", "inbox_store")


@dataclass(slots=True)
class StoredMessages:
    """The outcome of a batch, or of many; `known` were stored before."""

    moved: int = 0
    dead_letters: int = 0
    known: int = 0

    @property
    def taken(self) -> int:
        return self.moved + self.dead_letters + self.known

    def add(self, batch: "StoredMessages") -> None:
        self.moved += batch.moved
        self.dead_letters += batch.dead_letters
        self.known += batch.known


def digest(keyring: Keyring, identity: bytes) -> bytes:
    return keyring.digest(b"shovel\x1f" + identity)[:DIGEST_BYTES]


async def store(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    batch: Sequence[tuple[Taken, Mapped | Unmapped]],
    *,
    now: datetime,
) -> StoredMessages:
    """Store all or none; durable when it returns: the connection is in autocommit."""
    messages = [_sealed(keyring, taken, found) for taken, found in batch]
    etas = [_eta(found) for _, found in batch]
    parameters = {
        **put_columns(messages),
        "etas": etas,
        # from the ETA on: until then the same task may be delivered again
        "receipts_until": [max(now, eta or now) + timedelta(days=RECEIPT_DAYS) for eta in etas],
    }
    async with connection.transaction():
        cursor = await connection.execute(_SQL["put"], parameters, binary=True)
        is_new = [not is_duplicate for _, _, is_duplicate in await cursor.fetchall()]
        buried = [
            (message.message_id, found.cause.value, found.detail)
            for message, (_, found), new in zip(messages, batch, is_new, strict=True)
            if new and isinstance(found, Unmapped)
        ]
        # in the transaction that put them: a message that cannot be read must not be claimable for
        # a moment
        if buried:
            message_ids, causes, details = map(list, zip(*buried, strict=True))
            await connection.execute(
                _SQL["bury"], {"message_ids": message_ids, "causes": causes, "details": details}
            )
    stored = sum(is_new)
    return StoredMessages(
        moved=stored - len(buried), dead_letters=len(buried), known=len(batch) - stored
    )


async def resolve_mapped(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    found: Sequence[Mapped | Unmapped],
    *,
    actor: str,
) -> None:
    """Resolve the dead letters of messages that are in the inbox now."""
    digests = [digest(keyring, identities(one.task)[1]) for one in found if isinstance(one, Mapped)]
    await connection.execute(
        _SQL["resolve_mapped"],
        {"digests": digests, "actor": actor, "cause": Cause.UNMAPPED_TASK.value},
    )


def _sealed(keyring: Keyring, taken: Taken, found: Mapped | Unmapped) -> SealedMessage:
    if isinstance(found, Mapped):
        message = seal_message(keyring, found.carrier_id, found.body, found.headers)
    else:
        origin = {"transport": taken.transport.value, "queue": taken.queue}
        message = seal_message(keyring, LANE, taken.body, orjson.dumps(origin).decode())
    return replace(message, digest=digest(keyring, found.identity))


def _eta(found: Mapped | Unmapped) -> datetime | None:
    """Return the ETA; PostgreSQL's own range is wider than Python's, but a receipt
    ends later than its ETA.
    """
    eta = found.task.eta if isinstance(found, Mapped) else None
    return None if eta is None else min(eta, _ETA_MAX)
