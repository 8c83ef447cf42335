"""Requests and answers of the calls about code mappings."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from events.clear_part import TEXT
from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Reason, Status
from statesvc.addons.mappings.mapped_code import PrintedCode
from statesvc.addons.mappings.samples import SAMPLES_MAX
from statesvc.api import kit
from statesvc.repair.dead_letters.dead_letter import Obstacle

REVISION_MAX = 2**63 - 1
WHY_LENGTH_MAX = 1000
_NO_LISTED_TEXT: JsonDict = {"not": {"const": TEXT}}
Part = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]*$")]


class UnmappedParameters(kit.ClosedModel):
    """Unknown codes."""

    carrier_id: Annotated[kit.Name | None, Field(description="Of this carrier only.")] = None


class SampleParameters(kit.ClosedModel):
    """Events with an unknown code."""

    carrier_id: kit.Name
    raw_type: Annotated[
        Part | None, Field(description="As the list of unknown codes has it; left out for null.")
    ] = None
    raw_code: Annotated[
        Part | None, Field(description="As the list of unknown codes has it; left out for null.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=SAMPLES_MAX)] = 10
    include: kit.Include = None


class MappingsParameters(kit.PageParameters):
    """A carrier's mappings, the newest first."""

    carrier_id: kit.Name
    include: kit.Include = None


class MappedCodesParameters(kit.PageParameters):
    """Mappings of all carriers, the newest first."""

    carrier_id: Annotated[kit.Name | None, Field(description="Of this carrier only.")] = None
    revision: Annotated[
        int | None,
        Field(
            ge=1,
            le=REVISION_MAX,
            description="This row and all others of its code, those that it replaced too.",
        ),
    ] = None
    include: kit.Include = None


class RenormalizeParameters(kit.CarrierParameters):
    """The row whose code is read again."""

    revision: Annotated[int, Field(ge=1, le=REVISION_MAX)]


class MappingParameters(RenormalizeParameters):
    """A row."""

    include: kit.Include = None


_WHOLE: dict[str, Any] = {
    "if": {"required": ["kind"], "properties": {"kind": {"const": "info"}}},
    "then": {"properties": {"status": {"const": None}, "reason": {"const": None}}},
    "else": {
        "required": ["status"],
        "properties": {"status": {"not": {"enum": [None, Status.UNKNOWN]}}},
    },
}
_NAMED: dict[str, Any] = {
    "if": {"properties": {"raw_type": {"const": None}, "raw_code": {"const": None}}},
    "then": {"required": ["raw_text"], "properties": {"raw_text": {"type": "string"}}},
}


class TaughtMeaning(kit.ClosedModel):
    """Meaning of a code."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "scan", "status": "delivery_attempted"}], **_WHOLE}
    )

    kind: Annotated[
        Literal["scan", "info"],
        Field(description="A scan has a status; an `info` never moves one."),
        kit.FieldFace(
            label="Means",
            flag="--info",
            const="info",
            help="the code only informs; it never changes the status",
        ),
    ] = "scan"
    status: Status | None = None
    reason: Reason | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.kind == "scan") != (self.status is not None) or self.status is Status.UNKNOWN:
            raise ValueError("a scan has a status other than `unknown`, and an info has none")
        if self.reason is not None and self.status is None:
            raise ValueError("a reason belongs to a scan")
        return self

    @property
    def meaning(self) -> Meaning:
        return Meaning(Kind(self.kind), self.status, self.reason)


class PreviewRequest(kit.ClosedModel):
    """A code as the carrier prints it, and its meaning.

    Texts are given as the carrier prints them, too.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "raw_type": "X",
                    "raw_code": "9Z",
                    "meaning": {"kind": "scan", "status": "delivery_attempted"},
                }
            ],
            **_NAMED,
        },
    )

    raw_type: Annotated[
        Part | None,
        Field(description="Null: the carrier prints none.", json_schema_extra=_NO_LISTED_TEXT),
        kit.FieldFace(
            label="Type",
            hint="As the carrier prints it; empty where it prints none.",
            flag="--type",
            help="as the carrier prints it, where it prints one",
        ),
    ] = None
    raw_code: Annotated[
        Part | None,
        Field(
            description=(
                "Null: the carrier prints none. Without `raw_type` also `TYPE/CODE`, as"
                " `carrier_code` has it."
            ),
            json_schema_extra=_NO_LISTED_TEXT,
        ),
        kit.FieldFace(
            label="Code",
            hint="Or the text in its place, or the text-... of a history.",
            flag="--code",
            help="as the carrier prints it, TYPE/CODE as `unmapped` does, or the text in its place",
        ),
    ] = None
    raw_reason: Annotated[
        Part | None,
        Field(description="Only with this reason code next to it; null: any."),
        kit.FieldFace(
            label="Only with this reason code",
            hint="Empty: any.",
            flag="--carrier-reason",
            metavar="CODE",
        ),
    ] = None
    raw_text: Annotated[
        Part | None,
        Field(
            description=(
                "Only with this text; case and blanks do not matter. Alone where the carrier"
                " prints no code."
            )
        ),
        kit.FieldFace(
            label="Only with this text",
            hint=(
                "Empty: any. Alone where the carrier prints no code. It is stored sealed; its"
                " digest stands in the log."
            ),
            flag="--text",
        ),
    ] = None
    meaning: Annotated[
        TaughtMeaning | None, Field(description="Null: as the normalizer says, again.")
    ]

    def printed(self, carrier_id: str) -> PrintedCode:
        return PrintedCode(
            carrier_id=carrier_id,
            raw_type=self.raw_type,
            raw_code=self.raw_code,
            raw_reason=self.raw_reason,
            raw_text=self.raw_text,
        )


class TeachRequest(PreviewRequest):
    """Mapping to teach, with a reason."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "raw_type": "X",
                    "raw_code": "9Z",
                    "meaning": {"kind": "scan", "status": "delivery_attempted"},
                    "why": "their list of codes of 2026-11, page 4",
                }
            ],
            **_NAMED,
        }
    )

    why: Annotated[
        str,
        Field(
            min_length=1,
            max_length=WHY_LENGTH_MAX,
            pattern=r"^[^\x00]*\S[^\x00]*$",
            description="Stands in the log for ever: nothing personal.",
            examples=["their list of codes of 2026-11, page 4"],
        ),
    ]
    replaces: Annotated[
        int | None,
        Field(
            ge=0,
            le=REVISION_MAX,
            description=(
                "As the preview said: 409 where the code was mapped since. Null: whatever is there."
            ),
        ),
    ] = None
    force: Annotated[bool, Field(description="Map the code although no event has it.")] = False


class RenormalizeRequest(kit.ClosedModel):
    """Reading the history of the code again."""

    why: Annotated[str, Field(max_length=WHY_LENGTH_MAX, pattern=r"^[^\x00]*$")] = ""
    cursor: Annotated[
        str | None, Field(max_length=1024, description="`next_cursor` of the answer before.")
    ] = None


class Renormalized(BaseModel):
    """Outcome of a call."""

    revision: int
    messages: Annotated[int, Field(description="Messages with the code that were read again.")]
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
    notifications: int
    done: Annotated[bool, Field(description="The whole log was looked through.")]
    dead_letter_id: Annotated[
        int | None,
        Field(description="The open dead letter of the code, as it was found at the end."),
    ]
    obstacle: Annotated[
        Obstacle | None,
        Field(description="Why it stays open; null: it is settled, or there was none."),
    ]
    next_cursor: Annotated[str | None, Field(description="Call again with it to go on.")]
