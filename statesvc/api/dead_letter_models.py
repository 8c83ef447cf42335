"""What the calls about dead letters take and answer, as OpenAPI shows them."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from events.errors import Cause
from statesvc.api.parameters import Instant, Name
from statesvc.http.paging import PageParameters
from statesvc.repair.dead_letters.dead_letter import DeadLetterKind, Way
from statesvc.repair.dead_letters.listing import NEWEST
from statesvc.repair.dead_letters.obstacle import Obstacle
from statesvc.repair.dead_letters.put_back import Verdict

REPLAY_LIMIT_MAX = 500
Why = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00]*$", description="Stands in the log for ever: nothing personal.")]
Reason = Annotated[
    str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$", description="Stands in the log for ever: nothing personal.")
]
Cursor = Annotated[str | None, Field(max_length=1024, description="`next_cursor` of the answer before.")]


class GroupsParameters(BaseModel):
    """Which open dead letters to group."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: DeadLetterKind | None = None
    carrier_id: Name | None = None
    cause: Cause | None = None
    since: Annotated[Instant | None, Field(description="Buried then or later.")] = None
    until: Annotated[Instant | None, Field(description="Buried before then.")] = None


class DeadLettersParameters(PageParameters):
    """Dead letters, the newest first."""

    kind: DeadLetterKind | None = None
    carrier_id: Name | None = None
    cause: Cause | None = None
    since: Annotated[Instant | None, Field(description="Buried then or later.")] = None
    until: Annotated[Instant | None, Field(description="Buried before then.")] = None
    open: Annotated[bool | None, Field(description="`true`: not settled yet; `false`: settled. Left out: both.")] = None


class DeadLetterParameters(BaseModel):
    """One dead letter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[int, Field(ge=1, le=NEWEST)]


class DeadLetter(BaseModel):
    """One thing that waits for a human, or that a human settled. Holds nothing of the message."""

    model_config = ConfigDict(extra="forbid")

    dead_letter_id: int
    kind: DeadLetterKind
    cause: Cause
    carrier_id: str
    created_at: AwareDatetime
    message_id: Annotated[UUID | None, Field(description="Of a code: the message that said it first.")]
    received_at: AwareDatetime | None
    raw_type: str | None
    raw_code: str | None
    webhook_id: str | None
    detail: str
    attempts: int
    worker: str | None
    normalizer: str | None
    resolved_at: AwareDatetime | None
    resolution: Literal["replayed", "discarded"] | None
    resolved_by: str | None
    why: str | None
    run_id: Annotated[UUID | None, Field(description="The run that settled it, as the log's operator action names it.")]


class Statements(BaseModel):
    """What the log holds of an unknown code."""

    model_config = ConfigDict(extra="forbid")

    events: int
    shipments: int
    counts_capped: Annotated[bool, Field(description="The counts mean: at least so many.")]
    message_ids: Annotated[list[UUID], Field(description="Some messages that said it, to look at.")]


class Attempt(BaseModel):
    """One try. Of a message: those that did not settle it."""

    model_config = ConfigDict(extra="forbid")

    number: int
    worker: str | None
    started_at: AwareDatetime | None
    ended_at: AwareDatetime
    outcome: str
    error: Annotated[str | None, Field(description="A type, a status or an SQLSTATE; nothing of the message.")]
    normalizer: str | None


class Life(BaseModel):
    """Another letter of the same message or notification: it was replayed, and buried again."""

    model_config = ConfigDict(extra="forbid")

    dead_letter_id: int
    created_at: AwareDatetime
    cause: Cause
    detail: str
    attempts: int
    resolved_at: AwareDatetime | None
    resolution: Literal["replayed", "discarded"] | None
    resolved_by: str | None
    why: str | None
    run_id: UUID | None


class ShownDeadLetter(DeadLetter):
    """A dead letter with everything that is known about it."""

    way: Annotated[Way, Field(description="What a replay of it means.")]
    obstacle: Annotated[Obstacle | None, Field(description="What stands in the way of a replay, as far as can be told beforehand.")]
    became: Annotated[Verdict | None, Field(description="Of a replayed one: what came of it.")]
    statements: Annotated[Statements | None, Field(description="Of an unknown code.")]
    attempts_made: list[Attempt]
    other_lives: list[Life]


class Detail(BaseModel):
    """How many letters of a group say this."""

    detail: Annotated[str, Field(description="Of codes: type and code.")]
    letters: int


class Group(BaseModel):
    """Open letters of one kind, cause and carrier."""

    model_config = ConfigDict(extra="forbid")

    kind: DeadLetterKind
    cause: Cause
    carrier_id: str
    letters: int
    oldest_at: AwareDatetime
    newest_at: AwareDatetime
    dead_letter_ids: Annotated[list[int], Field(description="Some of them, to look at.")]
    details: Annotated[list[Detail], Field(description="What they say, the most frequent first.")]
    way: Annotated[Way, Field(description="What a replay of them means.")]


class Groups(BaseModel):
    """The open dead letters by what went wrong, the largest group first."""

    items: list[Group]
    counts_capped: Annotated[bool, Field(description="There are more letters than were looked at.")]


class ReplayOne(BaseModel):
    """Replaying one letter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    why: Why = ""
    cursor: Cursor = None


class ReplayedOne(BaseModel):
    """What was done."""

    dead_letter_id: int
    run_id: UUID
    way: Way
    resolved: Annotated[bool, Field(description="False: the events of a code are many; call again with the cursor.")]
    messages: Annotated[int, Field(description="Messages that were read again.")]
    corrected: int
    added: int
    next_cursor: str | None


class ReplayMany(BaseModel):
    """Which open letters to replay; at least one of carrier, cause and kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: DeadLetterKind | None = None
    carrier_id: Name | None = None
    cause: Cause | None = None
    since: Annotated[AwareDatetime | None, Field(description="Buried then or later.")] = None
    until: Annotated[AwareDatetime | None, Field(description="Buried before then.")] = None
    dry_run: Annotated[bool, Field(description="Only say what would be done.")] = False
    limit: Annotated[int, Field(ge=1, le=REPLAY_LIMIT_MAX, description="Letters of this call; a small one first is a canary.")] = 200
    why: Why = ""
    cursor: Cursor = None

    @model_validator(mode="after")
    def _means_some(self) -> Self:
        if self.kind is None and self.carrier_id is None and self.cause is None:
            raise ValueError("name at least one of carrier_id, cause and kind")
        return self


class PlanLine(BaseModel):
    """Open letters of one kind, cause and carrier."""

    kind: DeadLetterKind
    cause: Cause
    carrier_id: str
    way: Way
    letters: int
    replayable: int
    obstacles: Annotated[dict[Obstacle, int], Field(description="What stands in the way of how many.")]


class ReplayedMany(BaseModel):
    """What was done, or would be. Letters of codes are replayed one by one, for each has as many events as its carrier pushed."""

    run_id: UUID
    dry_run: bool
    plan: Annotated[list[PlanLine] | None, Field(description="Of a dry run: all letters that are meant.")]
    replayed: int
    refused: dict[Obstacle, int]
    code_letters: Annotated[list[int], Field(description="On the last page: letters of codes, to be replayed one by one.")]
    next_cursor: Annotated[str | None, Field(description="Call again with it to go on.")]


class Discard(BaseModel):
    """Giving a letter up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    why: Reason
