"""Bodies and answers of replaying and discarding dead letters."""

from typing import Annotated, Final, Self
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from events.errors import Cause
from statesvc.api import kit
from statesvc.http.removed_fields import removed
from statesvc.repair.dead_letters.dead_letter import DeadLetterFilter, DeadLetterKind, Obstacle, Way
from statesvc.repair.dead_letters.replay_plan import ReplayPlanLine
from statesvc.repair.dead_letters.replay_run import ReplayEnd

REPLAY_LIMIT_MAX: Final = 500
IDS_MAX: Final = 100


class ReplayOne(kit.ClosedModel):
    """Replay of a dead letter."""

    why: kit.Why = ""
    cursor: kit.NextPart = None


class ReplayedOne(BaseModel):
    """Outcome of a replay."""

    dead_letter_id: int
    run_id: UUID
    way: Way
    resolved: Annotated[
        bool, Field(description="False: the events of a code are many; call again with the cursor.")
    ]
    messages: Annotated[int, Field(description="Messages that were read again.")]
    corrected: int
    added: int
    next_cursor: str | None


class SelectedDeadLetters(kit.ClosedModel):
    """Selection of open dead letters: their ids, or at least carrier, cause or kind."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {
                "properties": {
                    "ids": {"const": None},
                    "kind": {"const": None},
                    "carrier_id": {"const": None},
                }
            },
            "then": {"required": ["cause"], "properties": {"cause": {"type": "string"}}},
        },
    )

    ids: Annotated[
        list[kit.RowNumber] | None,
        Field(max_length=IDS_MAX, description="These alone, and no filter beside them."),
        kit.FieldFace(metavar="ID"),
    ] = None
    kind: DeadLetterKind | None = None
    carrier_id: Annotated[
        kit.Name | None,
        kit.FieldFace(label="Carrier", hint="Empty: any. Name at least one of the three."),
    ] = None
    cause: Cause | None = None
    since: Annotated[AwareDatetime | None, Field(description="Buried then or later.")] = None
    until: Annotated[AwareDatetime | None, Field(description="Buried before then.")] = None
    dry_run: Annotated[bool, Field(description="Only answer what would be done.")] = False

    @model_validator(mode="after")
    def _means_some(self) -> Self:
        if self.ids is None and not (self.kind or self.carrier_id or self.cause):
            raise ValueError(
                "name the dead letters: ids, or at least one of carrier_id, cause and kind"
            )
        if self.ids is not None and self.filter.stated:
            raise ValueError("name dead letters by their ids, or by a filter, not both")
        return self

    @property
    def filter(self) -> DeadLetterFilter:
        return DeadLetterFilter(
            kind=self.kind,
            carrier_id=self.carrier_id,
            cause=self.cause,
            since=self.since,
            until=self.until,
        )


class ReplayMany(SelectedDeadLetters):
    """Open dead letters to replay."""

    limit: Annotated[
        int | None,
        Field(
            ge=1,
            le=REPLAY_LIMIT_MAX,
            description=(
                "How many, oldest first: replay 20, look, replay the rest. Left out: all, in as"
                " many calls as that takes."
            ),
        ),
        kit.FieldFace(label="How many", metavar="N"),
    ] = None
    canary: Annotated[int | None, removed("canary"), kit.FieldFace(metavar="N")] = None
    stop_at_percent: Annotated[
        float | None, removed("stop_at_percent"), kit.FieldFace(flag="--stop-at", metavar="PERCENT")
    ] = None
    per_second: Annotated[
        float | None, removed("per_second"), kit.FieldFace(flag="--rate", metavar="N")
    ] = None
    patience_seconds: Annotated[
        float | None,
        removed("patience_seconds"),
        kit.FieldFace(flag="--patience", metavar="SECONDS"),
    ] = None
    wait: Annotated[bool | None, removed("wait")] = None
    why: kit.Why = ""
    cursor: kit.NextPart = None


class ReplayedMany(BaseModel):
    """Outcome of a call, or of its dry run."""

    run_id: Annotated[UUID, Field(description="The same over all calls that a cursor joins.")]
    dry_run: bool
    plan: Annotated[
        list[ReplayPlanLine] | None,
        Field(description="Of a dry run: all dead letters that are meant."),
    ]
    replayed: Annotated[int, Field(description="By this call.")]
    refused: Annotated[
        dict[Obstacle, int], Field(description="By this call: what stood in the way of how many.")
    ]
    settled: Annotated[int, Field(description="0 since release 0.2.", deprecated=True)]
    failed: Annotated[int, Field(description="0 since release 0.2.", deprecated=True)]
    waiting: Annotated[
        int, Field(description="Put back into their queues by this call.", deprecated=True)
    ]
    messages: Annotated[
        int,
        Field(description="Messages that this call read again, for codes and rejected members."),
    ]
    corrected: int
    added: int
    ended: Annotated[ReplayEnd | None, Field(description="Why the call ended. Null: a dry run.")]
    remaining: Annotated[int, Field(description="Dead letters that the run has not come to.")]
    next_cursor: Annotated[
        str | None,
        Field(description="Call again with it to go on. Null: all is done."),
    ]


class Discard(kit.ClosedModel):
    """Giving a dead letter up."""

    why: kit.RequiredWhy


class DiscardMany(SelectedDeadLetters):
    """Open dead letters to discard."""

    why: kit.RequiredWhy


class DiscardedMany(BaseModel):
    """Dead letters that a call discarded, or would."""

    dry_run: bool
    discarded: Annotated[int, Field(description="By this call; 0 of a dry run.")]
    remaining: Annotated[
        int, Field(description="Open ones that the filter means: call again to go on with them.")
    ]
