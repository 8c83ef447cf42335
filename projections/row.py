"""A shipment's row: the current meaning of its log, in the order of the table's columns."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from msgspec import Struct
from msgspec.json import Decoder

from events.identity.recipes import number_of
from projections.expectations import ExpectationRules, flagged, next_deadline, promised_until
from projections.fact import decode_event, fact_from_log
from projections.fold import fold
from projections.state import ShipmentState

# Kind and cause of each observation, sorted.
Observed = tuple[tuple[str, str], ...]


class _Details(Struct, frozen=True, gc=False):
    cause: str = ""


class _Observation(Struct, frozen=True, gc=False):
    entry: str
    kind: str = ""
    details: _Details = _Details()


_decode: Final = Decoder(_Observation).decode
_WORD: Final = b'"entry":"observation"'


def is_observation(canonical: bytes) -> bool:
    """Return whether an entry is an observation.

    A substring search is enough: canonical JSON has a single spelling and escapes quotation
    marks in texts.
    """
    return _WORD in canonical


def observed_from_log(canonicals: Iterable[bytes]) -> Observed:
    found = (_decode(canonical) for canonical in canonicals if is_observation(canonical))
    return tuple(sorted({(one.kind, one.details.cause) for one in found}))


class ShipmentRow(NamedTuple):
    """A row of `statesvc.shipment`. `flags` sorted; `state` is the fold's whole accumulator.

    `due_at`: the time of the next check of the shipment's expectations. It depends on today's
    rules, and may be early.
    """

    shipment_id: UUID
    version: int
    recorded_at: datetime
    first_recorded_at: datetime
    last_event_at: datetime
    status_since: datetime | None
    delivered_at: datetime | None
    attempts: int
    terminal: bool
    carrier_id: str
    number: str
    tracking_number: str
    discriminator: str
    status: str
    reason: str | None
    flags: list[str]
    estimated_delivery: str | None
    signed_by_event_id: str | None
    promised_until: datetime | None
    lane: str | None
    service: str | None
    due_at: datetime | None
    state: bytes


def shipment_row(
    state: ShipmentState,
    *,
    shipment_id: UUID,
    version: int,
    recorded_at: datetime,
    first_recorded_at: datetime,
    occurred_at: datetime,
    carrier_id: str,
    number: str,
    tracking_number: str,
    discriminator: str,
    rules: ExpectationRules | None = None,
) -> ShipmentRow:
    """Build the row of `state` after the event with the highest version.

    That event gives the recorded time and texts. `rules`: of the carrier and service; None:
    without expectations.
    """
    deadline = rules and next_deadline(state, rules, recorded_at=recorded_at)
    return ShipmentRow(
        shipment_id,
        version,
        recorded_at,
        first_recorded_at,
        state.last_event_at or occurred_at,
        state.status_since,
        state.delivered_at,
        state.attempts,
        state.terminal,
        carrier_id,
        number,
        tracking_number,
        discriminator,
        state.status,
        state.reason,
        sorted([*state.flags, *flagged(state)]),
        state.estimated_delivery,
        state.signed_by_event_id,
        promised_until(state),
        state.lane,
        state.service,
        deadline.due_at if deadline else None,
        state.to_json(),
    )


def rebuilt_row(
    shipment_id: UUID,
    history: Sequence[bytes],
    rules_of: Callable[[str, str | None], ExpectationRules] | None = None,
) -> ShipmentRow:
    """Rebuild a row from all events and observations of a shipment.

    `history` holds their canonical bytes: at least one event; events oldest first, observations
    anywhere among them. `rules_of`: the rules of a carrier and a service.
    """
    events = [decode_event(canonical) for canonical in history if not is_observation(canonical)]
    observed = observed_from_log(history)
    first, last = events[0], events[-1]
    state = fold([fact_from_log(event) for event in events])
    return shipment_row(
        replace(state, observed=observed) if observed else state,
        shipment_id=shipment_id,
        version=last.version,
        recorded_at=datetime.fromisoformat(last.recorded_at),
        first_recorded_at=datetime.fromisoformat(first.recorded_at),
        occurred_at=datetime.fromisoformat(last.occurred_at),
        carrier_id=last.carrier_id,
        number=number_of(last.carrier_id, last.tracking_number),
        tracking_number=last.tracking_number,
        discriminator=last.discriminator,
        rules=rules_of and rules_of(last.carrier_id, state.service),
    )
