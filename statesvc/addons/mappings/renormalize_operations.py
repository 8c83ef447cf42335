"""`POST /v1/carriers/{carrier_id}/renormalize`: read all messages of a carrier again, in parts."""

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import AwareDatetime, BaseModel, Field

from statesvc.addons.mappings import code_mapping_operations as code_mappings
from statesvc.addons.mappings import code_words as words
from statesvc.addons.mappings import unmapped_code_operations as unmapped_codes
from statesvc.addons.mappings.code_mapping_models import (
    WHY_LENGTH_MAX,
    Renormalized,
    RenormalizeParameters,
    RenormalizeRequest,
)
from statesvc.addons.mappings.code_mapping_operations import stored_mapping
from statesvc.addons.mappings.history_reread import (
    HistoryPosition,
    HistoryRequest,
    HistoryReread,
    ReadingChange,
    StatusChange,
)
from statesvc.addons.mappings.reread_code import CodeReread, RereadPosition, RereadRequest
from statesvc.api import kit
from statesvc.repair.renormalize.correction_plan import COUNTERS, CodeKey
from statesvc.repair.renormalize.history_walk import HistoryWalk

SECONDS_MAX: Final = 15.0


LONG_SECONDS: Final = 30.0
_TAG: Final = "codes"
_MAPPING: Final = "/console/carriers/{carrier_id}/mappings/{revision}"
_CURSOR_CHARS_MAX: Final = 32_768
_PER_SECOND_MAX: Final = 1_000_000


class RenormalizeCarrier(kit.ClosedModel):
    """Reading the history of a carrier again."""

    since: Annotated[
        AwareDatetime | None,
        Field(description="Only messages received then or later; null: all."),
        kit.FieldFace(metavar="T"),
    ] = None
    read_by: Annotated[
        str | None,
        Field(
            max_length=200,
            pattern=r"^[^\x00]*$",
            description=(
                "Only what this version of the normalizer read, as after a rollout that was"
                " reverted."
            ),
        ),
        kit.FieldFace(metavar="VERSION"),
    ] = None
    per_second: Annotated[
        float | None,
        Field(
            gt=0,
            le=_PER_SECOND_MAX,
            description="At most so many messages a second; null: as fast as it goes.",
        ),
        kit.FieldFace(flag="--rate", metavar="N"),
    ] = None
    dry_run: Annotated[bool, Field(description="Only answer what would be done.")] = False
    notify: Annotated[
        bool,
        Field(
            description=(
                "`false`: no subscription is sent what the corrections change; their entries in"
                " the log say so."
            )
        ),
        kit.FieldFace(flag="--no-notify", help="send no subscription what the corrections change"),
    ] = True
    why: Annotated[
        str,
        Field(
            max_length=WHY_LENGTH_MAX,
            pattern=r"^[^\x00]*$",
            description="Stands in the log for ever: nothing personal.",
        ),
    ] = ""
    cursor: Annotated[
        str | None,
        Field(max_length=_CURSOR_CHARS_MAX, description="`next_cursor` of the answer before."),
    ] = None


class ReadCode(BaseModel):
    """A code as the list of unknown codes has it."""

    raw_type: str | None
    raw_code: str | None


class RenormalizedCarrier(BaseModel):
    """Outcome of a call, or of its dry run."""

    dry_run: bool
    scanned: Annotated[int, Field(description="Messages of all carriers that the call passed.")]
    messages: Annotated[int, Field(description="Those that it read again.")]
    events: int
    unchanged: int
    corrected: int
    retracted: int
    added: int
    unreadable: Annotated[
        int,
        Field(
            description=(
                "Events that stay as they are: their message is gone, and their codes do not"
                " decide."
            )
        ),
    ]
    transitions: int
    updates: Annotated[int, Field(description="Changes that keep the status.")]
    notifications: int
    rejected: Annotated[int, Field(description="Messages that hold members which are no events.")]
    unopened: Annotated[int, Field(description="Messages that cannot be read any more.")]
    beyond: Annotated[
        dict[str, int], Field(description="Differences by field that no correction can change.")
    ]
    changes: list[ReadingChange]
    moved: list[StatusChange]
    codes: Annotated[list[ReadCode], Field(description="Were unknown, and are read now.")]
    codes_left: Annotated[list[ReadCode], Field(description="Are as unknown as before.")]
    remaining: Annotated[
        int, Field(description="About how many messages of all carriers the run has still to pass.")
    ]
    next_cursor: Annotated[str | None, Field(description="Call again with it to go on.")]


@kit.operation(
    "POST /v1/carriers/{carrier_id}/renormalize",
    scope="ops",
    tag="codes",
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.INVALID_CURSOR),
    rules=("The carrier has no version `read_by`.",),
    is_computed=True,
    deadline_seconds=LONG_SECONDS,
    parts=kit.CallParts(
        summed=("scanned", *COUNTERS, "rejected", "unopened", "beyond"),
        left="remaining",
        rows={"changes": "events", "moved": "shipments", "codes": "", "codes_left": ""},
    ),
    view=(
        kit.Sentences(words.renormalized),
        kit.Table(kit.Column("from", "In effect"), kit.Column("to", "Now"), "events", of="changes"),
        kit.Sentences(words.left_as_read),
    ),
    commands=(
        kit.Command(
            name="renormalize",
            arguments=(),
            fields=("carrier_id", "since", "read_by", "per_second", "dry_run", "notify", "why"),
        ),
    ),
)
async def renormalize_carrier(
    context: kit.Context, call: kit.Call[kit.CarrierParameters, RenormalizeCarrier]
) -> RenormalizedCarrier:
    """Read the history of a carrier again.

    By the stable version and the present mappings, as many messages as fit into a call;
    differences are appended as corrections. Go on with `next_cursor`. Dead letters of codes that
    are known now stay open: replay those of `unknown_code`. Each call is an operator action.
    """
    wanted = call.body
    carrier = context.carrier(call.parameters.carrier_id)
    if wanted.read_by is not None and wanted.read_by not in carrier.normalizers:
        text = (
            f"{carrier.carrier_id} has no version {wanted.read_by}, but"
            f" {', '.join(carrier.normalizers)}"
        )
        raise kit.Problem(
            kit.Code.INVALID_REQUEST, text, violations=[kit.Violation("/body/read_by", text)]
        )
    bound_to = {
        "renormalize": carrier.carrier_id,
        **wanted.model_dump(mode="json", include={"since", "read_by", "dry_run", "notify"}),
    }
    run = HistoryReread(
        walk=HistoryWalk(
            connections=context.pool,
            rereader=await context.rereader("renormalize"),
            wake=context.wake,
            carrier_id=carrier.carrier_id,
            messages_max=context.limits.reread_messages,
            seconds=SECONDS_MAX,
            per_second=wanted.per_second,
            dry_run=wanted.dry_run,
            notify=wanted.notify,
        ),
        request=HistoryRequest(
            actor=call.caller.actor, why=wanted.why, since=wanted.since, read_by=wanted.read_by
        ),
        position=HistoryPosition()
        if wanted.cursor is None
        else kit.position_of(wanted.cursor, HistoryPosition, bound_to),
    )
    scanned = run.position.scanned
    report = await run.run()
    return RenormalizedCarrier(
        dry_run=wanted.dry_run,
        scanned=run.position.scanned - scanned,
        **report.counts,
        rejected=len(report.rejected),
        unopened=len(report.unopened),
        beyond=dict(+report.beyond),
        changes=[
            ReadingChange(from_=before, to=now, events=count)
            for (before, now), count in report.changes.most_common()
        ],
        moved=[
            StatusChange(from_=before, to=now, shipments=count)
            for (before, now), count in report.moved.most_common()
        ],
        codes=_listed(report.codes),
        codes_left=_listed(report.codes_left),
        remaining=run.remaining,
        next_cursor=None if run.is_done else kit.encode_position(run.position, bound_to),
    )


def _listed(codes: Iterable[CodeKey]) -> list[ReadCode]:
    return [
        ReadCode(raw_type=raw_type, raw_code=raw_code)
        for raw_type, raw_code in sorted(codes, key=str)
    ]


@kit.operation(
    "POST /v1/carriers/{carrier_id}/mappings/{revision}/renormalize",
    scope="ops",
    tag=_TAG,
    problems=(kit.Code.UNKNOWN_CARRIER, kit.Code.NOT_FOUND, kit.Code.INVALID_CURSOR),
    deadline_seconds=LONG_SECONDS,
    parts=kit.CallParts(
        summed=(
            "messages",
            "corrected",
            "retracted",
            "added",
            "unreadable",
            "transitions",
            "notifications",
        )
    ),
    view=kit.Sentences(words.reread),
    commands=(
        kit.Command(
            name="carriers renormalize",
            summary="read the history of a mapped code again, and append corrections",
            fields=("why",),
        ),
    ),
    forms=(
        kit.Form(
            path=_MAPPING + "/renormalize",
            title="Read the history of mapping {revision} again",
            button="Read its history again",
            would=kit.Sentences(
                "Messages with the code are read again. What comes out differently is"
                " appended as corrections, and notified."
            ),
            then=_MAPPING,
            section="/console/carriers",
        ),
    ),
)
async def renormalize_code_mapping(
    context: kit.Context, call: kit.Call[RenormalizeParameters, RenormalizeRequest]
) -> Renormalized:
    """Read the history of a mapped code again.

    Reads the messages with the code again, as many as fit into a call, and appends a correction
    for each difference; go on with `next_cursor`. At the end the open dead letter of the code
    is settled, if all of its events are known. An operator action.
    """
    context.carrier(call.parameters.carrier_id)
    async with context.pool.connection() as connection:
        row = await stored_mapping(connection, call.parameters.carrier_id, call.parameters.revision)
    bound_to = {"renormalize": row.revision}
    cursor = call.body.cursor
    run = CodeReread(
        walk=HistoryWalk(
            connections=context.pool,
            rereader=await context.rereader("renormalize"),
            wake=context.wake,
            carrier_id=call.parameters.carrier_id,
            messages_max=context.limits.reread_messages,
            seconds=SECONDS_MAX,
        ),
        request=RereadRequest(
            code=row.code, revision=row.revision, actor=call.caller.actor, why=call.body.why
        ),
        position=RereadPosition()
        if cursor is None
        else kit.position_of(cursor, RereadPosition, bound_to),
        page=context.limits.searched_events,
    )
    report = await run.run()
    return Renormalized(
        revision=row.revision,
        messages=report.messages,
        corrected=report.corrected,
        retracted=report.retracted,
        added=report.added,
        unreadable=report.unreadable,
        transitions=report.transitions,
        notifications=report.notifications,
        done=run.is_done,
        dead_letter_id=run.dead_letter_id,
        obstacle=run.obstacle,
        next_cursor=None if run.is_done else kit.encode_position(run.position, bound_to),
    )


OPERATIONS: Final = (
    *unmapped_codes.OPERATIONS,
    *code_mappings.OPERATIONS,
    renormalize_carrier,
    renormalize_code_mapping,
)
