"""Claiming messages, and the ways in which their leases end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from events.errors import Cause
from events.event import value
from statesvc.database.queries import (
    Columns,
    Pending,
    Sender,
    bools,
    byteas,
    columns,
    encoded,
    ints,
    queries,
    send,
    texts,
    uuids,
)

SQL = queries("statesvc.queue", "claim")
_CARRIER_ID: Final = 1
_SETTLEMENTS: Final[Columns] = {
    "message_ids": uuids,
    "events": ints,
    "empties": bools,
    "normalizers": texts,
    "shipments": texts,
    "sealed_keys": byteas,
}


@value(frozen=True, slots=True)
class Message:
    """A leased message.

    At stage `normalized` a foreign worker has read it: `normalized` holds its events, sealed
    like the body.
    """

    message_id: UUID
    carrier_id: str
    token: UUID
    attempts: int
    retries: int
    received_at: datetime
    stage: str
    candidate: str | None
    percent: int
    shadow: bool
    sealed_key: bytes = field(repr=False)
    commitment: bytes = field(repr=False)
    sealed: bytes = field(repr=False)
    normalized_by: str | None = None
    normalized: bytes | None = field(default=None, repr=False)
    postponed: int = 0
    """Number of times that it was given back because a shipment that it names was locked."""
    rescued_from: str | None = None
    """The worker that held the lease that ended without a verdict."""
    traceparent: str | None = None
    """Trace in which it came in, where that is sampled."""
    mappings: int = 0
    """The newest revision of the code mappings when it was claimed."""
    stable: str | None = None
    """The foreign reading that is its carrier's stable version; None: ours."""
    in_share: bool = False
    """True if it falls in the candidate's share."""
    fallback_for: str | None = None
    """The reading that it falls to and that did not lease it in time."""
    notify: bool = True
    """False for a message put into the inbox with `SILENT`."""

    @property
    def is_suspect(self) -> bool:
        """A worker died while it held this message: until it settles it is processed alone."""
        # attempts are counted at the claim, retries when given back: the difference ended without
        # any word
        return self.attempts - 1 - self.retries > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """Request of a worker.

    `sweep` looks below the low-water marks, `rescue_first` for ended leases before the lanes.
    """

    worker: str
    limit: int
    lease_seconds: float
    bytes_max: int
    sweep: bool = False
    rescue_first: bool = True


class Claimed(NamedTuple):
    """Messages that a claim leased, in inbox order, and (carrier, cause) of each that it buried.

    `complete`: no ready message was left. False where the claim cannot tell.
    """

    messages: list[Message]
    buried: list[tuple[str, Cause]]
    complete: bool


async def claim(connection: Sender, request: ClaimRequest) -> Claimed:
    """Lease messages. The connection is in autocommit: others see the lease when this returns."""
    parameters = {
        "worker": request.worker,
        "limit": request.limit,
        "lease": timedelta(seconds=request.lease_seconds),
        "bytes_max": request.bytes_max,
        "sweep": request.sweep,
        "rescue_first": request.rescue_first,
    }
    return await (await send(connection, SQL["claim"], parameters, _claimed)).rows()


def _claimed(rows: Sequence[Any]) -> Claimed:
    return Claimed(
        [
            Message(*row)
            for *row, buried_for, _ in rows
            # one row always comes back, even of an empty claim: it carries `complete`
            if buried_for is None and row[0] is not None
        ],
        [
            (row[_CARRIER_ID], Cause(buried_for))
            for *row, buried_for, _ in rows
            if buried_for is not None
        ],
        complete=any(complete for *_, complete in rows),
    )


async def lock_leased(
    connection: Sender, token: UUID, message_ids: Iterable[UUID], *, lock_seconds: float
) -> Pending[set[UUID]]:
    """Lock the messages for this transaction, which from then on waits
    `lock_seconds` for a lock at most.

    Returns those that the token still covers. The others belong to another worker now.
    """
    return await send(
        connection,
        SQL["lock_leased"],
        {
            "token": token,
            "message_ids": uuids(list(message_ids)),
            # 0 would mean to PostgreSQL: wait for ever
            "lock_milliseconds": max(1, round(lock_seconds * 1000)),
        },
        lambda rows: {message_id for (message_id,) in rows},
    )


@value(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The verdict on one message.

    The body's key is wrapped under the keys of all `shipments`; None: the body can no longer be
    opened.
    """

    message_id: UUID
    events: int
    empty: bool
    normalizer: str
    shipments: tuple[UUID, ...]
    sealed_key: bytes | None


async def settle(connection: Sender, settlements: Sequence[Settlement], *, worker: str) -> None:
    """End messages; this transaction must hold their rows."""
    rows = [
        (
            s.message_id,
            s.events,
            s.empty,
            s.normalizer,
            ",".join([shipment_id.hex for shipment_id in s.shipments]),
            s.sealed_key,
        )
        for s in settlements
    ]
    await connection.execute(SQL["settle"], {"worker": worker, **encoded(rows, _SETTLEMENTS)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Burial:
    """Burial of a message as a dead letter.

    `detail` must not quote the message; `normalizer` is its reader. `shipments`: those that it
    names, as far as it can be read.
    """

    message_id: UUID
    cause: Cause
    detail: str
    normalizer: str | None = None
    shipments: tuple[UUID, ...] = ()


async def bury(connection: Sender, token: UUID, burials: Sequence[Burial]) -> None:
    """Move messages to the dead letters, inside the caller's transaction.

    A message that names an erased shipment loses its body.
    """
    rows = [(b.message_id, b.cause.value, b.detail, b.normalizer) for b in burials]
    await connection.execute(
        SQL["bury"],
        {"token": token, **columns(rows, ("message_ids", "causes", "details", "normalizers"))},
    )
    # after the bury: only then is there a dead letter whose body can be removed
    await _forget_erased(connection, burials)


async def _forget_erased(
    connection: Sender, given_up: "Sequence[Burial] | Sequence[Retry]"
) -> None:
    """Remove the bodies of new dead letters that name an erased shipment."""
    named = [(each.message_id, shipment_id) for each in given_up for shipment_id in each.shipments]
    if named:
        await connection.execute(
            SQL["forget_erased"], columns(named, ("message_ids", "shipment_ids"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A message that is given back, to be available again after `delay`.

    `error` names a type and an SQLSTATE, no value.
    """

    message_id: UUID
    delay: timedelta
    error: str
    normalizer: str
    shipments: tuple[UUID, ...] = ()
    """Shipments that the message names."""


async def retry(connection: Sender, token: UUID, retries: Sequence[Retry]) -> None:
    """Give messages back, inside the caller's transaction.

    A message that has been given back too often is buried.
    """
    rows = [(d.message_id, d.delay, d.error, d.normalizer) for d in retries]
    await connection.execute(
        SQL["retry"],
        {"token": token, **columns(rows, ("message_ids", "delays", "errors", "normalizers"))},
    )
    await _forget_erased(connection, retries)


async def postpone(connection: Sender, token: UUID, message_ids: Sequence[UUID]) -> None:
    """Give messages back uncharged, for a short while: shipments that they name are locked."""
    await connection.execute(SQL["postpone"], {"token": token, "message_ids": uuids(message_ids)})


async def extend(connection: Sender, token: UUID, *, lease_seconds: float) -> int:
    """Extend the lease to `lease_seconds` from now; return how many messages the token still
    holds.
    """
    row = await (
        await connection.execute(
            SQL["extend"], {"token": token, "lease": timedelta(seconds=lease_seconds)}
        )
    ).fetchone()
    return 0 if row is None else row[0]


async def release(connection: Sender, token: UUID) -> None:
    """Give back, uncharged, the messages that the token still holds."""
    await connection.execute(SQL["release"], {"token": token})


class NextClaim(NamedTuple):
    """Time of the next claim.

    `seconds` None: no message waits; `throttled`: a carrier's bound holds back ready messages.
    """

    seconds: float | None
    throttled: bool


async def next_claim(connection: Sender, *, ahead: bool = True) -> NextClaim:
    """Return when to claim again after an empty claim. Without `ahead` the time is not queried."""
    row = await (await connection.execute(SQL["next_due"], {"ahead": ahead})).fetchone()
    return NextClaim(None, throttled=False) if row is None else NextClaim(*row)
