"""Requests and answers of the calls about rollouts."""

from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from statesvc.api import kit
from statesvc.reading.foreign_readings import COUNT_MAX
from statesvc.reading.rollout_store import (
    FALLBACK_SECONDS,
    FALLBACK_SECONDS_MAX,
    PERCENT_MAX,
    Guard,
    Rollout,
    RolloutSettings,
)
from statesvc.reading.trials import StoredDifference

GUARD_MESSAGES_MAX: Final = 5_000


_DIAL: Final = frozenset({"stable", "candidate", "percent", "shadow", "guard", "fallback_seconds"})


class RolloutParameters(kit.ClosedModel):
    """A carrier."""

    carrier_id: Annotated[
        kit.Name, Field(description="A carrier_id; `all` or `*` for all carriers.")
    ]


class GuardBounds(kit.ClosedModel):
    """Bounds at which the rollout falls back to 0 by itself."""

    messages: Annotated[
        int,
        Field(
            ge=1, le=GUARD_MESSAGES_MAX, description="How many of the last messages are counted."
        ),
        kit.FieldFace(
            label="Guard: number of the last messages",
            hint="Empty: no guard. At either bound the share falls to 0 by itself.",
            flag="--guard-messages",
            metavar="N",
        ),
    ]
    errors_percent: Annotated[
        float | None,
        Field(ge=0, le=100, description="At most this many that the candidate could not read."),
        kit.FieldFace(
            label="At most this percentage fails", flag="--guard-errors", metavar="PERCENT"
        ),
    ] = None
    differences_percent: Annotated[
        float | None,
        Field(ge=0, le=100, description="At most this many read differently; needs `shadow`."),
        kit.FieldFace(
            label="At most this percentage is read differently",
            flag="--guard-differences",
            metavar="PERCENT",
        ),
    ] = None


class RolloutChange(kit.PartialChange):
    """Rollout to set; a member that is left out stays as it is.

    The log stores `why`: no personal data there.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "properties": {"hold": {"const": None}},
                "propertyNames": {"enum": ["hold", "why"]},
            }
        },
    )

    hold: Annotated[
        bool | None,
        Field(description="Messages are stored, not processed, from the next claim on."),
    ] = None
    why: kit.Why = ""
    stable: Annotated[
        str | None,
        Field(
            max_length=100,
            description=(
                "Who reads what the candidate does not: another fleet's name@version; null: our"
                " stable version."
            ),
        ),
        kit.FieldFace(label="Stable reading", hint="Empty: our stable version.", null="ours"),
    ] = None
    candidate: Annotated[
        str | None,
        Field(
            max_length=100,
            description=(
                "A registered version of the carrier, or another fleet's name@version; null ends"
                " the rollout."
            ),
        ),
        kit.FieldFace(
            hint="Our version, or another fleet's name@version. Empty: it ends.", null="none"
        ),
    ] = None
    percent: Annotated[
        int,
        Field(ge=0, le=PERCENT_MAX, description="The share of messages that the candidate reads."),
        kit.FieldFace(label="Share of its messages, in percent"),
    ] = 0
    shadow: Annotated[
        bool,
        Field(
            description=(
                "Reads each message with both versions and stores the differences; no effect"
                " otherwise."
            )
        ),
        kit.FieldFace(label="Shadow: read every message with both, and store the differences"),
    ] = False
    guard: Annotated[GuardBounds | None, Field(description="Null: it never falls back.")] = None
    fallback_seconds: Annotated[
        int,
        Field(
            ge=1,
            le=FALLBACK_SECONDS_MAX,
            description=(
                "What a fleet did not lease in that time the other reader takes, once it has asked"
                " for nothing so long."
            ),
        ),
    ] = FALLBACK_SECONDS
    force: Annotated[
        bool,
        Field(
            description=(
                "Raises the share though the shadow shows other event ids. Needs `why`; the log"
                " stores it."
            )
        ),
    ] = False
    dry_run: Annotated[bool, Field(description="Checks the change, and makes none.")] = False

    @model_validator(mode="after")
    def _turns_something(self) -> Self:
        if self.hold is None and not self.model_fields_set & _DIAL:
            raise ValueError(
                "name what to turn: hold, stable, candidate, percent, shadow, guard or"
                " fallback_seconds"
            )
        if self.force and not self.why:
            raise ValueError("a forced share needs a reason: `why`")
        return self

    def applied_to(self, present: Rollout) -> RolloutSettings | None:
        """Return the rollout to set; None: only the kill switch changes.

        Without a candidate the rollout ends.
        """
        named = self.model_fields_set & _DIAL
        if not named:
            return None
        ends = "candidate" in named and self.candidate is None
        guard = Guard(**self.guard.model_dump()) if self.guard is not None else None
        return RolloutSettings(
            candidate=self.candidate if "candidate" in named else present.candidate,
            percent=self.percent if "percent" in named or ends else present.percent,
            shadow=self.shadow if "shadow" in named or ends else present.shadow,
            guard=guard if "guard" in named or ends else present.guard,
            stable=self.stable if "stable" in named else present.stable,
            fallback_seconds=(
                self.fallback_seconds if "fallback_seconds" in named else present.fallback_seconds
            ),
        )


class ShownReading(TypedDict):
    """Either reading of a carrier that another fleet shares."""

    reading: Annotated[str, Field(description="name@version; `statesvc`: ours.")]
    role: Literal["stable", "candidate"]
    share: Annotated[int, Field(description="In percent.")]
    asked_seconds_ago: Annotated[
        float | None, Field(description="When it last asked for messages; null: never.")
    ]
    waiting: Annotated[
        int, Field(description=f"Messages that it may lease; {COUNT_MAX} means at least.")
    ]
    oldest_seconds: float | None
    leased: int
    fallbacks: Annotated[
        int, Field(description="Its messages that others took because it left them.")
    ]


class ShownRollout(TypedDict):
    """The rollout of a carrier."""

    carrier_id: str
    stable: str | None
    candidate: str | None
    percent: int
    shadow: bool
    hold: bool
    held: Annotated[
        bool, Field(description="Its messages wait: by its own kill switch, or by the one of all.")
    ]
    changed_at: AwareDatetime | None
    changed_by: str | None
    why: str
    turned_at: Annotated[
        AwareDatetime | None,
        Field(description="Since when candidate, share and guard are as they are."),
    ]
    guard: Guard | None
    fallback_seconds: int
    readings: Annotated[
        list[ShownReading], Field(description="Of a carrier that another fleet shares; else empty.")
    ]
    warnings: Annotated[
        list[str],
        Field(description="What it asks for, and some workers cannot do, or nobody asks for."),
    ]


class DiffsParameters(kit.PageParameters, kit.CarrierParameters):
    """Differences of a carrier's candidate."""

    candidate: Annotated[
        kit.Name | None, Field(description="Only those of this version; left out: of all.")
    ] = None


class TrialTotals(TypedDict):
    """Results of the current candidate's trial, since it was named."""

    candidate: str | None
    messages: int
    errors: Annotated[
        int, Field(description="Messages that it could not read and the stable version could.")
    ]
    differing: int
    fields: Annotated[
        dict[str, int], Field(description="How often each field was read differently.")
    ]
    dropped: Annotated[
        int, Field(description="Messages that another fleet was to try, and did not in time.")
    ]


class DiffsPage(TypedDict):
    """A page of differences, the newest first."""

    items: list[StoredDifference]
    next_cursor: str | None
    totals: TrialTotals
