"""The life cycle of a shipment, declared once.

`RULES` is the declaration; `machine` hands it to the `transitions` library; `MOVES` is compiled
from that machine when this module is imported, because a machine costs fifty microseconds a scan
and a lookup costs a tenth of a microsecond. `MOVES` is total: each pair of status and scanned
status has an entry. An illegal scan keeps the status and raises a flag, never an error.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from transitions import Machine, Transition

from events.vocabulary import Status


class Flag(StrEnum):
    """Oddity in a shipment's history.

    Once raised it stays, unless a correction takes its cause away.
    """

    CONTRADICTED = "contradicted"
    """A scan that contradicts the known state; it did not move the status."""
    REOPENED = "reopened"
    """Scanned again after it was cancelled or lost."""
    REDELIVERED = "redelivered"
    """Delivered, out for delivery again, and delivered again: time and signer are those
    of the later delivery.
    """
    BACKWARD = "backward"
    """Label data after possession (does not move the status), or a pickup after movement (does)."""
    DELIVERED_WHILE_RETURNING = "delivered_while_returning"
    """Delivered on the way back, perhaps to the sender: the carrier did not say to whom."""


class Move(NamedTuple):
    """Effect of a scan.

    `flag_if_out_again` replaces `flag` where the parcel has gone out again since it was
    delivered.
    """

    to: Status
    flag: Flag | None
    flag_if_out_again: Flag | None


@dataclass(frozen=True, slots=True)
class Rule:
    """In one of `sources`, a scan in `scans` moves to its status (`moves`) or leaves the status."""

    sources: tuple[Status, ...]
    scans: tuple[Status, ...]
    moves: bool = True
    flag: Flag | None = None
    only_if_out_again: bool = False


SCANS: Final = tuple(status for status in Status if status is not Status.UNKNOWN)
TERMINAL: Final = frozenset(
    {Status.DELIVERED, Status.RETURNED, Status.CANCELLED, Status.LOST, Status.DESTROYED}
)
# Scans after `delivered` that make the next `delivered` a second delivery, not a repetition.
OUT_AGAIN: Final = frozenset({Status.OUT_FOR_DELIVERY, Status.DELIVERY_ATTEMPTED})

_UNDER_WAY: Final = (
    Status.IN_TRANSIT,
    Status.EXCEPTION,
    Status.AVAILABLE_FOR_PICKUP,
    Status.OUT_FOR_DELIVERY,
    Status.DELIVERY_ATTEMPTED,
)
ACTIVE: Final = (Status.PICKED_UP, *_UNDER_WAY)
_ENDS: Final = (Status.DELIVERED, Status.RETURNED, Status.LOST, Status.DESTROYED)
_SEEN_ALIVE: Final = (*ACTIVE, Status.RETURNING, Status.DELIVERED, Status.RETURNED)

# The first matching rule decides, as in `transitions`.
RULES: Final = (
    # Carriers leave scans out and subscriptions begin in mid-life, so a shipment not yet possessed
    # may turn into anything.
    Rule((Status.UNKNOWN, Status.INFO_RECEIVED), SCANS),
    Rule(ACTIVE, (*_UNDER_WAY, Status.RETURNING, *_ENDS)),
    Rule((Status.PICKED_UP,), (Status.PICKED_UP,)),
    Rule(_UNDER_WAY, (Status.PICKED_UP,), flag=Flag.BACKWARD),
    Rule((*ACTIVE, Status.RETURNING), (Status.CANCELLED,), moves=False, flag=Flag.CONTRADICTED),
    Rule((Status.RETURNING,), (*ACTIVE, Status.RETURNING), moves=False),
    Rule((Status.RETURNING,), (Status.DELIVERED,), flag=Flag.DELIVERED_WHILE_RETURNING),
    Rule((Status.RETURNING,), (Status.RETURNED, Status.LOST, Status.DESTROYED)),
    Rule(
        (Status.DELIVERED,),
        (Status.DELIVERED,),
        moves=False,
        flag=Flag.REDELIVERED,
        only_if_out_again=True,
    ),
    Rule((Status.DELIVERED,), (Status.RETURNING, Status.RETURNED)),
    Rule((Status.CANCELLED,), _SEEN_ALIVE, flag=Flag.REOPENED),
    Rule((Status.LOST,), (*_SEEN_ALIVE, Status.DESTROYED), flag=Flag.REOPENED),
    *(Rule((end,), (end,), moves=False) for end in Status if end in TERMINAL),
    Rule(
        (*ACTIVE, Status.RETURNING, *sorted(TERMINAL)),
        (Status.INFO_RECEIVED,),
        moves=False,
        flag=Flag.BACKWARD,
    ),
    Rule(tuple(sorted(TERMINAL)), SCANS, moves=False, flag=Flag.CONTRADICTED),
    Rule(tuple(Status), (Status.UNKNOWN,), moves=False),
)


def machine(model: object | None = None) -> Machine:
    """Build the life cycle as a `transitions` machine: triggers are scanned statuses.

    A model needs one method for each flag, called when the flag is raised, and an
    attribute `out_again`.
    """
    built = Machine(
        model=model,
        states=[status.value for status in Status],
        initial=Status.UNKNOWN.value,
        # `to_<status>` triggers would move a shipment past the rules
        auto_transitions=False,
    )
    for rule in RULES:
        for scan in rule.scans:
            built.add_transition(
                trigger=scan.value,
                source=[source.value for source in rule.sources],
                dest=scan.value if rule.moves else "=",
                conditions=["out_again"] if rule.only_if_out_again else [],
                after=[rule.flag.value] if rule.flag else [],
            )
    return built


def _flag(transition: Transition | None) -> Flag | None:
    if transition is None or not transition.after:
        return None
    return Flag(str(transition.after[0]))


def _compile(declared: Machine) -> dict[tuple[Status, Status], Move]:
    moves = {}
    for trigger, event in declared.events.items():
        for source, candidates in event.transitions.items():
            # the first that applies without a condition: later rules for the pair are never reached
            plain = next(candidate for candidate in candidates if not candidate.conditions)
            guarded = next((candidate for candidate in candidates if candidate.conditions), None)
            flag = _flag(plain)
            moves[Status(source), Status(trigger)] = Move(
                Status(plain.dest or source), flag, _flag(guarded) or flag
            )
    return moves


# (current status, scanned status) -> effect of the scan.
MOVES: Final = _compile(machine())
