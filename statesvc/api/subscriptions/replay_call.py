"""`POST /v1/subscriptions/{id}/replay`: sending a range again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid4

from aiohttp import web

from statesvc.api.subscriptions.models import ReplayProgress, ReplayWish, SubscriptionParameters
from statesvc.api.subscriptions.ownership import absent, require_visible
from statesvc.database.pool import Connections
from statesvc.database.wakeups.channels import OUTBOX
from statesvc.database.wakeups.waker import Wakes
from statesvc.http.api_keys import caller_of
from statesvc.http.call_progress import CallParts
from statesvc.http.key_store import Scope
from statesvc.http.operation import WHY_TAKEN, Reply, Route, answer, body, parameters, route, why_of
from statesvc.http.paging import decode_cursor, encode_cursor
from statesvc.http.problem import Code, Problem, Violation
from statesvc.log.archive.log_archive import LogArchive
from statesvc.subscriptions.replay import CALL_SECONDS, START, ReplayPosition, ReplayRequest, read_status, replay

_DEADLINE_SECONDS: Final = CALL_SECONDS + 15


@dataclass(frozen=True, slots=True)
class RangeReplay:
    """The handler."""

    pool: Connections
    waker: Wakes
    archive: LogArchive

    async def replay(self, request: web.Request) -> Reply[ReplayProgress]:
        """A part of the range, as much as one call may."""
        asked, subscription_id = body(request, ReplayWish), parameters(request, SubscriptionParameters).subscription_id
        bound_to = {"replay": str(subscription_id), **asked.model_dump(mode="json", exclude={"cursor"})}
        async with self.pool.connection() as connection:
            await require_visible(connection, request, subscription_id)
            current = await read_status(connection, subscription_id)
            if current is None:
                raise absent(subscription_id)
            if current.disabled and not asked.dry_run:
                raise Problem(Code.CONFLICT, "the subscription is disabled: resume it first, so that nothing is missed after the replay")
            until, after, run_id = min(asked.until or current.now, current.now), START, uuid4()
            if asked.cursor is not None:
                until, after, run_id = _place(decode_cursor(asked.cursor, bound_to, fields=5))
            # what came before was never its to be notified of; who may read the shipments anyway may have it sent
            since = asked.since if caller_of(request).has(Scope.READ) else max(asked.since, current.created_at)
            if asked.until is not None and asked.until <= asked.since:
                raise Problem(
                    Code.INVALID_REQUEST, "the body breaks the contract", violations=[Violation("/body/until", "must lie after since")]
                )
            order = ReplayRequest(
                subscription_id=subscription_id,
                since=since,
                until=until,
                open_end=asked.until is None or asked.until >= current.now,
                delivered_too=asked.delivered_too,
                dry_run=asked.dry_run,
                actor=caller_of(request).actor,
                run_id=run_id,
                **why_of(request),
            )
            progress = await replay(connection, order, archive=self.archive, after=after)
        if progress.put and not asked.dry_run:
            self.waker.wake(OUTBOX)
        cursor = None
        if progress.after is not None:
            at, shipment_id, sequence = progress.after
            cursor = encode_cursor([until.isoformat(), at.isoformat(), str(shipment_id), sequence, str(run_id)], bound_to)
        return answer(
            {
                "run_id": run_id,
                "dry_run": asked.dry_run,
                "since": since,
                "until": until,
                "matched": progress.matched,
                "put": progress.put,
                "never_written": progress.never_written,
                "waiting": progress.waiting,
                "delivered": progress.delivered,
                "next_cursor": cursor,
            }
        )


def _place(position: Sequence[Any]) -> tuple[datetime, ReplayPosition, UUID]:
    try:
        until, at, shipment_id, sequence, run_id = position
        place = ReplayPosition(datetime.fromisoformat(at).astimezone(UTC), UUID(shipment_id), int(sequence))
        return datetime.fromisoformat(until).astimezone(UTC), place, UUID(run_id)
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise Problem(Code.INVALID_CURSOR, "send `next_cursor` as it was given") from None


def replay_routes(pool: Connections, waker: Wakes, archive: LogArchive) -> Sequence[Route]:
    """The call."""
    return [
        route(
            "POST /v1/subscriptions/{subscription_id}/replay",
            RangeReplay(pool, waker, archive).replay,
            operation_id="replay_subscription",
            rules=("`until` lies after `since`.",),
            summary="Send a range again",
            description=(
                "Puts what was written for the subscription in a range of time back into the outbox, under the same `webhook-id`, and "
                "writes changes of status that match it but came while it was disabled. With a key that has the scope `read` too, the "
                "range may begin before the subscription was made; with others it begins there (`since` of the answer). What it has "
                "taken is left out unless `delivered_too`. Does a bounded part; go on with `next_cursor`. Recorded as operator actions."
            ),
            scope="subscriptions",
            tag="subscriptions",
            parameters=SubscriptionParameters,
            request=ReplayWish,
            request_headers=WHY_TAKEN,
            response=ReplayProgress,
            problems=(Code.NOT_FOUND, Code.CONFLICT, Code.INVALID_CURSOR),
            deadline_seconds=_DEADLINE_SECONDS,
            parts=CallParts(summed=("matched", "put", "waiting", "delivered")),
        )
    ]
