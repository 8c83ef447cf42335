"""Requests and answers of the calls about expectations."""

from typing import Annotated, Final

from pydantic import AwareDatetime, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from events.parsing.service_name import SERVICE_CHARACTERS_MAX
from statesvc.api.parameters import Name
from statesvc.http.closed_model import ClosedModel

HOURS_MAX: Final = 8_760
REVISION_MAX: Final = 2**63 - 1
WHY_LENGTH_MAX: Final = 1000
_CLOSED: Final = ConfigDict(extra="forbid")

Hours = Annotated[int | None, Field(ge=0, le=HOURS_MAX, description="Null: never.")]
HoursFromOne = Annotated[int | None, Field(ge=1, le=HOURS_MAX, description="Null: never.")]


@with_config(_CLOSED)
class StalledHours(TypedDict, total=False):
    """Hours after the last scan, by the status that the shipment is in."""

    picked_up: HoursFromOne
    in_transit: HoursFromOne
    exception: HoursFromOne
    out_for_delivery: HoursFromOne
    delivery_attempted: HoursFromOne
    returning: HoursFromOne


@with_config(_CLOSED)
class StatedHours(TypedDict, total=False):
    """Hours after which silence is observed. They count from the times in docs/expectations.md.

    Hours that are left out are inherited.
    """

    stalled: StalledHours
    not_picked_up: HoursFromOne
    overdue: Hours
    delivery_missed: Hours
    pickup_expiring: HoursFromOne


class AllHours(TypedDict):
    """Hours after which silence is observed; null: never."""

    stalled: Annotated[
        dict[str, int | None], Field(description="By the status that the shipment is in.")
    ]
    not_picked_up: int | None
    overdue: int | None
    delivery_missed: int | None
    pickup_expiring: int | None


class ExpectationParameters(ClosedModel):
    """A carrier, or one of its services."""

    carrier_id: Annotated[
        Name, Field(description="A carrier_id; `all` or `*` for those that say nothing themselves.")
    ]
    service: Annotated[
        str | None,
        Field(
            max_length=SERVICE_CHARACTERS_MAX,
            description=(
                "One of the carrier's services, as the carrier names it; case and blanks do not"
                " matter. Left out: the carrier."
            ),
            examples=["UPS Ground"],
        ),
    ] = None


class RulesRequest(ClosedModel):
    """Rules of a carrier, whole: they replace its former rules."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"rules": {"stalled": {"in_transit": 96}, "pickup_expiring": None}}]
        }
    )

    rules: StatedHours


class RulesStatement(RulesRequest):
    """Rules with a reason for the change."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "rules": {"stalled": {"in_transit": 96}},
                    "why": "their contract of 2026-11",
                    "replaces": 0,
                }
            ]
        },
    )

    why: Annotated[
        str,
        Field(
            min_length=1,
            max_length=WHY_LENGTH_MAX,
            pattern=r"^[^\x00]*\S[^\x00]*$",
            description="Stands in the log for ever: nothing personal.",
        ),
    ]
    replaces: Annotated[
        int | None,
        Field(
            ge=0,
            le=REVISION_MAX,
            description=(
                "As the preview said: 409 where others stated rules since. Null: whatever is there."
            ),
        ),
    ] = None


class CarrierExpectations(TypedDict):
    """Expectations of the shipments of a carrier or of its service."""

    carrier_id: Annotated[str, Field(description="`*`: all that say nothing themselves.")]
    service: Annotated[
        str | None,
        Field(
            description=(
                "As it is compared: in lower case. Null: those that state nothing themselves."
            )
        ),
    ]
    revision: Annotated[int, Field(description="0: nothing was ever stated.")]
    stated: StatedHours
    inherited: Annotated[
        AllHours,
        Field(
            description=(
                "What holds where it states nothing: of the carrier, of all carriers, or our"
                " defaults."
            )
        ),
    ]
    in_effect: AllHours
    changed_at: AwareDatetime | None
    changed_by: str | None
    why: str
    applied: Annotated[
        bool,
        Field(
            description=(
                "Shipments that wait have their deadlines by it; new ones have them at once."
            )
        ),
    ]
