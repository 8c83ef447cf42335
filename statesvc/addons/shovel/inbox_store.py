"""Messages of another broker into the inbox, or whole to the dead letters: a transaction a batch.

The receipt that recognises a carrier's retry recognises these too: its digest is of the task's id,
not of the body, and it is retained until long after the ETA. So a batch may be stored again, by any
process, without effect. A second receipt, of id and content, recognises another message that reuses
an id: it becomes a dead letter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import orjson
from psycopg import AsyncConnection

from events.crypto.keyring import DIGEST_BYTES, Keyring
from events.errors import Cause
from statesvc.addons.shovel.source_message import Taken
from statesvc.addons.shovel.task_mapping import Mapped, Unmapped, unmapped_identity
from statesvc.bodies.sealed_message import SealedMessage, put_columns, seal_message
from statesvc.database.queries import queries

# Days after its ETA, or its transfer, for which a message is recognised.
RECEIPT_DAYS: Final = 90
# The carrier of dead letters without a carrier. No carrier may have this name.
LANE: Final = "shovel"
_REUSED: Final = "another message with this id came before it, with other content"
_ETA_MAX: Final = datetime(9000, 1, 1, tzinfo=UTC)

_SQL = queries("statesvc.addons.shovel", "inbox_store")


@dataclass(slots=True)
class StoredMessages:
    """The outcome of a batch, or of many; `known` were stored before.

    `reused_ids`: of the dead letters those with the id of another message.
    """

    moved: int = 0
    dead_letters: int = 0
    known: int = 0
    reused_ids: int = 0

    @property
    def taken(self) -> int:
        return self.moved + self.dead_letters + self.known

    def add(self, batch: "StoredMessages") -> None:
        self.moved += batch.moved
        self.dead_letters += batch.dead_letters
        self.known += batch.known
        self.reused_ids += batch.reused_ids


@dataclass(frozen=True, slots=True)
class _Wanted:
    message: SealedMessage
    eta: datetime | None
    now: datetime

    @property
    def receipt_until(self) -> datetime:
        """Time until which a repetition is recognised."""
        # from the ETA on: until then the same task may be delivered again
        return max(self.now, self.eta or self.now) + timedelta(days=RECEIPT_DAYS)


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
    wanted = [_Wanted(_sealed(keyring, taken, found), _eta(found), now) for taken, found in batch]
    async with connection.transaction():
        stored = await _put(connection, wanted)
        # after the put, which tells by the receipt which ids were there before
        reused = await _reused(connection, keyring, batch, wanted, stored)
        buried = [
            (one.message.message_id, found.cause, found.detail)
            for one, (_, found), (_, is_new) in zip(wanted, batch, stored, strict=True)
            if is_new and isinstance(found, Unmapped)
        ]
        unmapped = len(buried)
        if reused:
            again = zip(reused, await _put(connection, reused), strict=True)
            buried += [
                (one.message.message_id, Cause.REUSED_TASK_ID, _REUSED)
                for one, (_, is_new) in again
                if is_new
            ]
        # in the transaction that put them: a message that cannot be read must not be claimable for
        # a moment
        if buried:
            message_ids, causes, details = zip(*buried, strict=True)
            parameters = {
                "message_ids": list(message_ids),
                "causes": [cause.value for cause in causes],
                "details": list(details),
            }
            await connection.execute(_SQL["bury"], parameters)
    new, reused_ids = sum(is_new for _, is_new in stored), len(buried) - unmapped
    return StoredMessages(
        moved=new - unmapped,
        dead_letters=len(buried),
        known=len(batch) - new - reused_ids,
        reused_ids=reused_ids,
    )


async def _put(
    connection: AsyncConnection[Any], wanted: Sequence["_Wanted"]
) -> list[tuple[UUID, bool]]:
    """Put messages; return under which id each is in the inbox, and whether it is so by this."""
    columns = put_columns([one.message for one in wanted])
    times = {
        "etas": [one.eta for one in wanted],
        "receipts_until": [one.receipt_until for one in wanted],
    }
    cursor = await connection.execute(_SQL["put"], {**columns, **times}, binary=True)
    return [
        (message_id, not is_duplicate) for _, message_id, is_duplicate in await cursor.fetchall()
    ]


async def _reused(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    batch: Sequence[tuple[Taken, Mapped | Unmapped]],
    wanted: Sequence["_Wanted"],
    stored: Sequence[tuple[UUID, bool]],
) -> list["_Wanted"]:
    """Record the content of new messages; return those that reuse an id with other content.

    These are stored as they came.
    """
    contents = [
        None if found.content is None else digest(keyring, b"content\x1f" + found.content)
        for _, found in batch
    ]
    new = [
        (content, *one, until.receipt_until)
        for content, one, until in zip(contents, stored, wanted, strict=True)
        if content and one[1]
    ]
    if new:
        parameters = {
            "digests": [content for content, *_ in new],
            "message_ids": [message_id for _, message_id, *_ in new],
            "receipts_until": [until for *_, until in new],
        }
        await connection.execute(_SQL["note_contents"], parameters)
    asked = [
        content
        for content, (_, is_new) in zip(contents, stored, strict=True)
        if content and not is_new
    ]
    if not asked:
        return []
    noted = set(
        await (
            await connection.execute(_SQL["contents"], {"digests": asked}, binary=True)
        ).fetchall()
    )
    others = []
    for (taken, found), content, (message_id, is_new), one in zip(
        batch, contents, stored, wanted, strict=True
    ):
        if content and not is_new and (content, message_id) not in noted:
            message = seal_message(keyring, LANE, taken.body, _origin(taken))
            reused = replace(
                message, digest=digest(keyring, b"reused\x1f" + (found.content or b""))
            )
            others.append(replace(one, message=reused))
    return others


async def resolve_mapped(
    connection: AsyncConnection[Any],
    keyring: Keyring,
    found: Sequence[Mapped | Unmapped],
    *,
    actor: str,
) -> None:
    """Resolve the dead letters of messages that are in the inbox now."""
    digests = [
        digest(keyring, unmapped_identity(one.identity)) for one in found if isinstance(one, Mapped)
    ]
    await connection.execute(
        _SQL["resolve_mapped"],
        {"digests": digests, "actor": actor, "cause": Cause.UNMAPPED_TASK.value},
    )


def _sealed(keyring: Keyring, taken: Taken, found: Mapped | Unmapped) -> SealedMessage:
    if isinstance(found, Mapped):
        message = seal_message(keyring, found.carrier_id, found.body, found.headers)
    else:
        message = seal_message(keyring, LANE, taken.body, _origin(taken))
    return replace(message, digest=digest(keyring, found.identity))


def _origin(taken: Taken) -> str:
    return orjson.dumps({"transport": taken.transport.value, "queue": taken.queue}).decode()


def _eta(found: Mapped | Unmapped) -> datetime | None:
    """Return the ETA; PostgreSQL's own range is wider than Python's, but a receipt
    ends later than its ETA.
    """
    eta = found.task.eta if isinstance(found, Mapped) else None
    return None if eta is None else min(eta, _ETA_MAX)
