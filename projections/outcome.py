"""What a message changed, as subscribers see it: the worker turns it into at most one transition and one notification a shipment."""

from dataclasses import dataclass

from events.vocabulary import Status
from projections.state import ShipmentState


@dataclass(frozen=True, slots=True)
class Transition:
    """The status changed: an immutable audit row, and `shipment.status_changed`."""

    from_status: Status
    to_status: Status


@dataclass(frozen=True, slots=True)
class Updated:
    """The status is the same, but what was told about it is not true any more: `shipment.updated`."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing that a subscriber waits for."""


MessageEffect = Transition | Updated | Unchanged


def effect_of(before: ShipmentState, after: ShipmentState) -> MessageEffect:
    """What became of a shipment by one message."""
    if before.status is not after.status:
        return Transition(before.status, after.status)
    if before.delivered_event_id != after.delivered_event_id:
        return Updated()
    if before.corrections != after.corrections and _told(before) != _told(after):
        return Updated()
    return Unchanged()


def _told(state: ShipmentState) -> tuple[object, ...]:
    signer = state.signature.digest if state.signature else None
    return (state.reason, state.status_since, state.delivered_at, state.attempts, signer)
