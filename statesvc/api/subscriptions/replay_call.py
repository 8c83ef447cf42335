"""`POST /v1/subscriptions/{id}/replay`: sending a range again."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final
from uuid import UUID, uuid4

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.api.subscriptions.models import SubscriptionParameters
from statesvc.api.subscriptions.ownership import absent, require_visible
from statesvc.api.subscriptions.subscription_operations import LIST, SCREEN
from statesvc.api.subscriptions.subscription_words import replayed
from statesvc.database.wakeups.wakeup import OUTBOX
from statesvc.http.keys.key_store import Scope
from statesvc.subscriptions.replay import CALL_SECONDS, START, ReplayRequest, read_status, replay
from statesvc.subscriptions.sent_notifications import NotificationPosition

_DEADLINE_SECONDS: Final = CALL_SECONDS + 15


class ReplayInput(kit.ClosedModel):
    """Range to send again. Bounds are times at which changes were recorded."""

    since: Annotated[
        AwareDatetime,
        Field(
            description=(
                "Recorded then or later. Before the subscription was made: for keys with scope"
                " `read`."
            )
        ),
    ]
    until: Annotated[
        AwareDatetime | None, Field(description="Recorded before then; null: up to now.")
    ] = None
    dry_run: Annotated[bool, Field(description="Only count.")] = False
    delivered_too: Annotated[
        bool,
        Field(
            description="Also what the subscriber has taken already; it dedupes on `webhook-id`."
        ),
    ] = False
    cursor: Annotated[
        str | None,
        Field(
            max_length=1024, description="`next_cursor` of the answer before, with the same range."
        ),
    ] = None


class ReplayProgress(TypedDict):
    """Outcome of this call, or of its dry run."""

    run_id: Annotated[
        UUID, Field(description="As the log's operator actions name it; the same on all pages.")
    ]
    dry_run: bool
    since: AwareDatetime
    until: AwareDatetime
    matched: Annotated[
        int,
        Field(
            description="Notifications in the range, and changes that were not collected but match."
        ),
    ]
    put: Annotated[int, Field(description="Put into the outbox, or would be.")]
    never_written: Annotated[
        int,
        Field(
            description=(
                "Of those: changes before the subscription was made, or while it was disabled."
            )
        ),
    ]
    waiting: Annotated[int, Field(description="Left alone: they wait in the outbox anyway.")]
    delivered: Annotated[int, Field(description="Left out: the subscriber has taken them.")]
    next_cursor: Annotated[
        str | None, Field(description="The range goes on: call again with it. null: done.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePosition:
    """A run over a range, and behind which change it goes on."""

    until: datetime
    at: datetime
    shipment_id: UUID
    sequence: kit.RowNumber
    run_id: UUID

    @property
    def after(self) -> NotificationPosition:
        """The position as the replay takes it."""
        return NotificationPosition(self.at.astimezone(UTC), self.shipment_id, self.sequence)


@kit.operation(
    "POST /v1/subscriptions/{subscription_id}/replay",
    scope="subscriptions",
    tag="subscriptions",
    rules=("`until` lies after `since`.",),
    request_headers=kit.WHY_TAKEN,
    problems=(kit.Code.NOT_FOUND, kit.Code.CONFLICT, kit.Code.INVALID_CURSOR),
    deadline_seconds=_DEADLINE_SECONDS,
    parts=kit.CallParts(summed=("matched", "put", "never_written", "waiting", "delivered")),
    view=kit.Sentences(replayed),
    commands=(
        kit.Command(
            name="subscriptions replay", fields=("since", "until", "delivered_too", "dry_run")
        ),
    ),
    forms=(
        kit.Form(
            path=SCREEN + "/replay",
            title="Send a range again",
            button="Send a range again",
            fields=("since", "until", "delivered_too"),
            then=SCREEN,
            section=LIST,
        ),
    ),
)
async def replay_subscription(
    context: kit.Context, call: kit.Call[SubscriptionParameters, ReplayInput]
) -> ReplayProgress:
    """Replay the notifications of a range of time.

    Puts the subscription's notifications of a range of time back into the outbox, under the
    same `webhook-id`, and writes changes of status that match it but came while it was
    disabled. With a key that has the scope `read` too, the range may begin before the
    subscription was made; with others it begins there (`since` of the answer). Delivered
    notifications are left out unless `delivered_too`. Does a bounded part; go on with
    `next_cursor`. Recorded as operator actions.
    """
    wanted, subscription_id = call.body, call.parameters.subscription_id
    bound_to = {
        "replay": str(subscription_id),
        **wanted.model_dump(mode="json", exclude={"cursor"}),
    }
    async with context.pool.connection() as connection:
        await require_visible(connection, call, subscription_id)
        current = await read_status(connection, subscription_id)
        if current is None:
            raise absent(subscription_id)
        if current.disabled and not wanted.dry_run:
            raise kit.Problem(
                kit.Code.CONFLICT,
                "the subscription is disabled: resume it first, so that nothing is missed after the"
                " replay",
            )
        # fixed by the first call: changes that come during a run are no part of it
        until, after, run_id = min(wanted.until or current.now, current.now), START, uuid4()
        if wanted.cursor is not None:
            position = kit.position_of(wanted.cursor, RangePosition, bound_to)
            until, after, run_id = position.until.astimezone(UTC), position.after, position.run_id
        # what came before was never its to be notified of; who may read the shipments anyway may
        # have it sent
        since = (
            wanted.since if call.caller.has(Scope.READ) else max(wanted.since, current.created_at)
        )
        if wanted.until is not None and wanted.until <= wanted.since:
            raise kit.Problem(
                kit.Code.INVALID_REQUEST,
                "the body breaks the contract",
                violations=[kit.Violation("/body/until", "must lie after since")],
            )
        order = ReplayRequest(
            subscription_id=subscription_id,
            since=since,
            until=until,
            open_end=wanted.until is None or wanted.until >= current.now,
            delivered_too=wanted.delivered_too,
            dry_run=wanted.dry_run,
            actor=call.caller.actor,
            run_id=run_id,
            **call.why,
        )
        progress = await replay(connection, order, archive=context.log_archive(), after=after)
    if progress.put and not wanted.dry_run:
        context.waker.wake(OUTBOX)
    cursor = None
    if progress.after is not None:
        at, shipment_id, sequence = progress.after
        goes_on = RangePosition(
            until=until, at=at, shipment_id=shipment_id, sequence=sequence, run_id=run_id
        )
        cursor = kit.encode_position(goes_on, bound_to)
    return {
        "run_id": run_id,
        "dry_run": wanted.dry_run,
        "since": since,
        "until": until,
        "matched": progress.matched,
        "put": progress.put,
        "never_written": progress.never_written,
        "waiting": progress.waiting,
        "delivered": progress.delivered,
        "next_cursor": cursor,
    }


OPERATIONS: Final = (replay_subscription,)
