"""`/v1/dead-letters...`: list, replay and discard dead letters. Each change is an operator action.

A replay is a run that is cut into calls; its `next_cursor` goes on.
"""

from dataclasses import asdict
from typing import Annotated, Any, Final

from pydantic import Field

from events.errors import Cause
from statesvc.api import dead_letter_words as words
from statesvc.api import kit
from statesvc.repair.dead_letters import listing
from statesvc.repair.dead_letters.dead_letter import DeadLetter, DeadLetterFilter, DeadLetterKind
from statesvc.repair.dead_letters.listing import (
    DeadLetterDetails,
    DeadLetterGroups,
    describe_dead_letter,
    group_dead_letters,
)

_TAG: Final = "dead letters"
LIST: Final = "/console/dead-letters"
_FILTER: Final = ("kind", "carrier_id", "cause")


class DeadLetterGroupsParameters(kit.ClosedModel):
    """Selection of open dead letters to group."""

    kind: DeadLetterKind | None = None
    carrier_id: kit.Name | None = None
    cause: Cause | None = None
    since: Annotated[kit.Instant | None, Field(description="Buried then or later.")] = None
    until: Annotated[kit.Instant | None, Field(description="Buried before then.")] = None


class DeadLetterListParameters(kit.PageParameters, DeadLetterGroupsParameters):
    """Dead letters, the newest first."""

    open: Annotated[
        bool | None, Field(description="`true`: not settled yet; `false`: settled. Left out: both.")
    ] = None


class DeadLetterParameters(kit.ClosedModel):
    """A dead letter."""

    id: Annotated[int, Field(ge=1, le=kit.NEWEST)]


@kit.operation(
    "GET /v1/dead-letters",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.INVALID_CURSOR, kit.Code.UNKNOWN_CARRIER),
    view=kit.Table(
        kit.Column("dead_letter_id", "ID", link=LIST + "/{dead_letter_id}"),
        kit.Column("created_at", "Since"),
        "carrier_id",
        "kind",
        "cause",
        kit.Column(words.subject, "Detail"),
        "attempts",
        kit.Column("resolution", "Settled"),
        kit.Column("resolved_by", "By", wide=True),
        kit.Column("why", wide=True),
        empty="No dead letter is open.",
    ),
    commands=(kit.Command(name="dead-letters list", preset={"open": True}),),
    pages=(
        kit.ConsolePage(
            path=LIST + "/group",
            title="Dead letters",
            section=LIST,
            filter=("kind", "carrier_id", "cause", "open"),
            preset={"open": "true"},
            acts=(LIST + "/replay", LIST + "/discard"),
        ),
    ),
)
async def list_dead_letters(
    context: kit.Context, call: kit.Call[DeadLetterListParameters, None]
) -> kit.Page[DeadLetter]:
    """List dead letters."""
    given = call.parameters
    wanted = DeadLetterFilter(
        kind=given.kind,
        carrier_id=given.carrier_id,
        cause=given.cause,
        since=given.since,
        until=given.until,
        is_open=given.open,
    )
    bound_to: dict[str, Any] = {"list": "dead-letters", **asdict(wanted)}
    before = kit.before_number(given.cursor, bound_to)
    async with context.pool.connection() as connection:
        items, next_before = await listing.list_dead_letters(
            connection, wanted, before=before, limit=given.limit
        )
    if not items:
        context.refuse_unknown(given.carrier_id)
    return kit.Page(
        items, None if next_before is None else kit.encode_cursor([next_before], bound_to)
    )


@kit.operation(
    "GET /v1/dead-letters/groups",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER,),
    view=(
        kit.Table(
            "dead_letters",
            "carrier_id",
            "kind",
            kit.Column(words.group_cause, "What went wrong", link=words.group_path),
            "cause",
            kit.Column("oldest_at", "Since"),
            kit.Column(words.still_coming, "Still coming?"),
            kit.Column(words.newest_of, "Newest", link=words.newest_path),
            kit.Column(words.group_details, "Mostly"),
            empty="No dead letter is open.",
        ),
        kit.Sentences("... there are more dead letters than were counted", when="counts_capped"),
    ),
    commands=(kit.Command(name="dead-letters groups"),),
    pages=(
        kit.ConsolePage(
            path=LIST,
            title="Dead letters",
            menu="Dead letters",
            filter=("kind", "carrier_id", "cause"),
            acts=(LIST + "/replay", LIST + "/discard"),
            runbook=("DeadLettersGrow", "FormatChanged", "UnknownCodes"),
        ),
    ),
)
async def list_dead_letter_groups(
    context: kit.Context, call: kit.Call[DeadLetterGroupsParameters, None]
) -> DeadLetterGroups:
    """Group dead letters by cause.

    The open ones, by kind, cause and carrier, with the details that occur most.
    """
    async with context.pool.connection() as connection:
        groups = await group_dead_letters(connection, DeadLetterFilter(**dict(call.parameters)))
    if not groups.items:
        context.refuse_unknown(call.parameters.carrier_id)
    return groups


@kit.operation(
    "GET /v1/dead-letters/{id}",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.NOT_FOUND,),
    view=(
        kit.Details(
            kit.Column(words.group_cause, "What went wrong", link=words.group_path),
            "cause",
            "carrier_id",
            "kind",
            kit.Column(words.subject, "Detail", link=words.code_page),
            kit.Column("created_at", "Since"),
            kit.Column("message_id", "Message", link="/console/messages/{message_id}"),
            "received_at",
            kit.Column("webhook_id", "Notification"),
            "attempts",
            "worker",
            "normalizer",
            kit.Column("occurrences.events", "Events with the code"),
            kit.Column("occurrences.shipments", "On shipments"),
            kit.Column(words.replay_words, "Replay"),
            "became",
            "resolution",
            "resolved_at",
            "resolved_by",
            "why",
            kit.Column("run_id", "Run"),
        ),
        kit.Table(
            kit.Column("number", "Attempt"),
            "worker",
            "started_at",
            "ended_at",
            "outcome",
            "error",
            "normalizer",
            of="attempts_made",
            title="Attempts",
        ),
        kit.Table(
            kit.Column("dead_letter_id", "Dead letter", link=LIST + "/{dead_letter_id}"),
            kit.Column("created_at", "Since"),
            "cause",
            "detail",
            "resolution",
            kit.Column("resolved_by", "By"),
            "why",
            of="related",
            title="Other dead letters of the same",
        ),
    ),
    commands=(kit.Command(name="dead-letters show"),),
    pages=(
        kit.ConsolePage(
            path=LIST + "/{id}",
            title="Dead letter {id}",
            section=LIST,
            acts=(LIST + "/{id}/replay", LIST + "/{id}/discard"),
        ),
    ),
)
async def get_dead_letter(
    context: kit.Context, call: kit.Call[DeadLetterParameters, None]
) -> DeadLetterDetails:
    """Show a dead letter.

    With each attempt, earlier and later dead letters of the same message, and the effect of a
    replay or the obstacle to it. Of an unknown code: its count, its number of shipments, and
    the latest messages with it.
    """
    async with context.pool.connection() as connection:
        details = await describe_dead_letter(connection, call.parameters.id)
    if details is None:
        raise absent(call.parameters.id)
    return details


def absent(dead_letter_id: int) -> kit.Problem:
    return kit.Problem(kit.Code.NOT_FOUND, f"there is no dead letter {dead_letter_id}")


OPERATIONS: Final = (
    list_dead_letters,
    list_dead_letter_groups,
    get_dead_letter,
)
