"""Sending a subscriber the notifications of a time range again, missed or delivered.

Existing notifications go back into the outbox under their webhook-id. Changes during a disabled
time are made from the log under the id that they would have had: a receiver that dedupes sees each
once. A range is replayed in pages, each a transaction with its own operator action, from a position
that the caller passes back: an interrupted call loses nothing, and a repeated one sends nothing
twice. Updates without a change of status are replayed only where they were written, because the log
does not list them.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

import orjson
from psycopg import AsyncConnection

from events.entry.kinds import rfc3339
from projections.parcel import SourceFilter
from statesvc.database.queries import columns, queries
from statesvc.log.actions import Action, append_actions
from statesvc.log.batch_row import begin_batch, write_batch
from statesvc.log.fanouts import append_fanouts, repeated_fanouts
from statesvc.log.history import History
from statesvc.log.json_compression import decompress_json
from statesvc.log.parcel_log import parcels_of, read_present_parcels
from statesvc.subscriptions.sent_notifications import NotificationPosition, SentNotification

PAGE_ROWS: Final = 500
# Transitions that a page reads: a narrow filter costs no more.
WINDOW_ROWS: Final = 20_000
CALL_ROWS: Final = 20_000
CALL_SECONDS: Final = 15.0

_SQL = queries("statesvc.subscriptions", "replay")


START: Final = NotificationPosition(datetime(1, 1, 1, tzinfo=UTC), UUID(int=0), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """Range to replay.

    `until` is exclusive; `open_end`: up to now. `delivered_too`: delivered ones again.
    """

    subscription_id: UUID
    since: datetime
    until: datetime
    open_end: bool
    delivered_too: bool
    dry_run: bool
    actor: str
    run_id: UUID
    why: str = ""


@dataclass(slots=True)
class RangeProgress:
    """Result of a call, or of its dry run. `after` None: the range is done."""

    matched: int = 0
    put: int = 0
    """Now in the outbox, or to be put there."""
    never_written: int = 0
    """Number of those that were never written, because the subscription was disabled."""
    waiting: int = 0
    """Were in the outbox anyway."""
    delivered: int = 0
    """Left out, because the subscriber has them."""
    after: NotificationPosition | None = START


class SubscriptionStatus(NamedTuple):
    created_at: datetime
    disabled: bool
    now: datetime


async def read_status(
    connection: AsyncConnection[Any], subscription_id: UUID
) -> SubscriptionStatus | None:
    """Return the status; None where there is no such subscription."""
    row = await (
        await connection.execute(_SQL["read_status"], {"subscription_id": subscription_id})
    ).fetchone()
    return None if row is None else SubscriptionStatus(*row)


async def replay(
    connection: AsyncConnection[Any],
    request: ReplayRequest,
    *,
    archive: History,
    after: NotificationPosition = START,
) -> RangeProgress:
    """Replay from `after` on, within the bounds of a call. Raises UnreadableArchiveError."""
    # before the pages, from the position on: a call that goes on need not read old months again
    await archive.restore_period(connection, max(request.since, after.at), request.until)
    progress, deadline = RangeProgress(after=after), time.monotonic() + CALL_SECONDS
    while (
        progress.after is not None and progress.matched < CALL_ROWS and time.monotonic() < deadline
    ):
        await _page(connection, request, progress, progress.after)
    # only at the end of the range: a subscription that missed something shows it until all is sent
    if progress.after is None and not request.dry_run:
        until = None if request.open_end else request.until
        await connection.execute(
            _SQL["made_up_for"],
            {"subscription_id": request.subscription_id, "since": request.since, "until": until},
        )
    return progress


class _Found(NamedTuple):
    at: datetime
    shipment_id: UUID
    sequence: int
    written: bool
    waiting: bool
    delivered: bool


async def _page(
    connection: AsyncConnection[Any],
    request: ReplayRequest,
    progress: RangeProgress,
    after: NotificationPosition,
) -> None:
    bounds = {
        "subscription_id": request.subscription_id,
        "since": request.since,
        "until": request.until,
        **after._asdict(),
    }
    # the window ends at a row, not at a time: many transitions may share a microsecond
    row = await (
        await connection.execute(_SQL["window_end"], {**bounds, "window": WINDOW_ROWS}, binary=True)
    ).fetchone()
    end = None if row is None else NotificationPosition(*row)
    window = {
        "end_at": end and end.at,
        "end_shipment_id": end and end.shipment_id,
        "end_sequence": end and end.sequence,
    }
    cursor = await connection.execute(
        _SQL["page"], {**bounds, **window, "limit": PAGE_ROWS}, binary=True
    )
    found = [_Found(*row) for row in await cursor.fetchall()]
    missed = [one for one in found if not one.written]
    left_out = await _reported_before(connection, request.subscription_id, missed)
    # only of those that were never written: what was written once was meant to be sent
    left_out |= await _silent(connection, missed)
    matched = [one for one in found if one not in left_out]
    wanted = [
        one for one in matched if not one.waiting and (request.delivered_too or not one.delivered)
    ]
    progress.matched += len(matched)
    progress.waiting += sum(one.waiting for one in matched)
    progress.delivered += (
        0 if request.delivered_too else sum(one.delivered and not one.waiting for one in matched)
    )
    if request.dry_run:
        progress.put += len(wanted)
        progress.never_written += sum(not one.written for one in wanted)
    elif wanted:
        put, never_written = await _put(connection, request, wanted)
        progress.put += put
        progress.never_written += never_written
    # a full page may have more within its window; otherwise the whole window is done
    progress.after = NotificationPosition(*found[-1][:3]) if len(found) == PAGE_ROWS else end


async def _silent(connection: AsyncConnection[Any], missed: Sequence[_Found]) -> set[_Found]:
    """Return those submitted with `notify=false`."""
    if not missed:
        return set()
    rows = [(one.shipment_id, one.sequence, one.at) for one in missed]
    cursor = await connection.execute(
        _SQL["events"], columns(rows, ("shipment_ids", "sequences", "ats")), binary=True
    )
    silent = {
        (shipment_id, version)
        for shipment_id, version, canonical in await cursor.fetchall()
        if orjson.loads(decompress_json(canonical)).get("notify") is False
    }
    return {one for one in missed if (one.shipment_id, one.sequence) in silent}


async def _reported_before(
    connection: AsyncConnection[Any], subscription_id: UUID, missed: Sequence[_Found]
) -> set[_Found]:
    """Return those that another source of the parcel had reported, if each status is sent once."""
    row = await (
        await connection.execute(_SQL["once"], {"subscription_id": subscription_id})
    ).fetchone()
    parcel_ids = (
        {} if row is None else await parcels_of(connection, {one.shipment_id for one in missed})
    )
    if row is None or not parcel_ids:
        return set()
    parcels = await (await read_present_parcels(connection, set(parcel_ids.values()))).rows()
    several = {
        parcel_id: parcel.notified(SourceFilter(*row))
        for parcel_id, parcel in parcels.items()
        if parcel.has_several_sources
    }
    reported = {
        shipment_id: several[parcel_id]
        for shipment_id, parcel_id in parcel_ids.items()
        if parcel_id in several
    }
    return {
        one
        for one in missed
        if one.shipment_id in reported
        and (one.shipment_id, one.sequence) not in reported[one.shipment_id]
    }


async def _put(
    connection: AsyncConnection[Any], request: ReplayRequest, wanted: Sequence[_Found]
) -> tuple[int, int]:
    async with connection.transaction():
        again = SentAgain(
            subscription_id=request.subscription_id,
            actor=request.actor,
            why="replayed with its range",
            run_id=request.run_id,
        )
        rows = await put_again(
            connection,
            again,
            [(one.shipment_id, one.sequence, one.at, one.written) for one in wanted],
        )
        put, never_written = len(rows), sum(not again for *_, again, _ in rows)
        if put:
            details = {
                "run_id": str(request.run_id),
                "since": rfc3339(request.since),
                "until": rfc3339(request.until),
                "delivered_too": request.delivered_too,
                "put": put,
                "never_written": never_written,
                **({"why": request.why} if request.why else {}),
            }
            target = f"subscription {request.subscription_id}"
            await record_again(
                connection,
                rows,
                Action(
                    actor=request.actor, verb="subscription.replay", target=target, details=details
                ),
            )
    return put, never_written


@dataclass(frozen=True, slots=True, kw_only=True)
class SentAgain:
    """The actor of a replay, and the note on its dead letters."""

    subscription_id: UUID
    actor: str
    why: str
    run_id: UUID


async def put_again(
    connection: AsyncConnection[Any],
    again: SentAgain,
    wanted: Sequence[tuple[UUID, int, datetime, bool]],
) -> Sequence[Any]:
    """Put these notifications back into the outbox; return the rows for `record_again`."""
    # in the transaction: a subscription deleted meanwhile gets nothing put into its outbox
    current = await read_status(connection, again.subscription_id)
    if current is None:
        return []
    asked = columns(wanted, ("shipment_ids", "sequences", "ats", "writtens"))
    by = {"actor": again.actor, "why": again.why, "run_id": again.run_id}
    cursor = await connection.execute(
        _SQL["put"], {"subscription_id": again.subscription_id, "now": current.now, **by, **asked}
    )
    return await cursor.fetchall()


async def record_again(
    connection: AsyncConnection[Any], rows: Sequence[Any], action: Action
) -> None:
    """Append the fan-outs and the operator's action. Raises ArchivedHistoryError."""
    now = await (await begin_batch(connection)).rows()
    leaf_hashes = await append_fanouts(
        connection, repeated_fanouts(rows, recorded_at=now.recorded_at), now=now
    )
    # after the fan-outs: ordinals of a batch go on across kinds
    leaf_hashes += await append_actions(connection, [action], now=now, before=len(leaf_hashes))
    await write_batch(
        connection,
        batch_id=now.batch_id,
        recorded_at=now.recorded_at,
        leaf_hashes=leaf_hashes,
        writer=action.actor,
    )


_LOOKS: Final = 20
_LOOK_SECONDS: Final = 0.05


class UnderWayError(RuntimeError):
    """A notifier is sending it, and has not ended within a second."""


async def resend(
    connection: AsyncConnection[Any],
    subscription_id: UUID,
    sent: SentNotification,
    *,
    actor: str,
    why: str = "",
) -> None:
    """Send a single notification again under its id, with an action in the same transaction.

    One that waits becomes due at once, and is not put twice; the end of a send in progress is
    waited for briefly.

    Raises ArchivedHistoryError, UnderWayError.
    """
    await _until_ended(connection, subscription_id, sent)
    webhook_id = sent.notification.webhook_id
    details = {"webhook_id": webhook_id, **({"why": why} if why else {})}
    action = Action(
        actor=actor,
        verb="subscription.resend",
        target=f"subscription {subscription_id}",
        details=details,
    )
    async with connection.transaction():
        again = SentAgain(
            subscription_id=subscription_id, actor=actor, why="sent again", run_id=uuid4()
        )
        put = await put_again(
            connection, again, [(sent.place.shipment_id, sent.place.sequence, sent.place.at, True)]
        )
        if not put:
            await connection.execute(
                _SQL["make_due"],
                {"subscription_id": subscription_id, "shipment_id": sent.place.shipment_id},
            )
        await record_again(connection, put, action)


async def _until_ended(
    connection: AsyncConnection[Any], subscription_id: UUID, sent: SentNotification
) -> None:
    notification = {
        "subscription_id": subscription_id,
        "shipment_id": sent.place.shipment_id,
        "sequence": sent.place.sequence,
    }
    for _ in range(_LOOKS):
        if await (await connection.execute(_SQL["under_way"], notification)).fetchone() is None:
            return
        await asyncio.sleep(_LOOK_SECONDS)
    raise UnderWayError
