"""Sentences about the record of a shipment, from the API's answers alone. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from events.vocabulary import Kind
from projections.correction import OWN_PREFIX, correct
from projections.fact import fact_from_canonical
from statesvc.shipments.plain_names import REMARKS, spaced
from statesvc.shipments.printed_times import carrier_time

Event = Mapping[str, Any]
_COMPARED: Final[Mapping[str, str]] = {
    "status": "the status",
    "reason": "the reason",
    "occurred_at": "the time",
    "carrier_code": "the code",
    "tracking_number": "the number",
    "piece": "the piece",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLine:
    """A statement of the carrier.

    `lag_seconds`: from its time to our receipt; None if the carrier printed no time of day.
    `gap_seconds`: since the scan before it, where both have a time of day.
    `is_void`: it was taken back. `moved`: the status that it led to, if that is another.
    """

    event: Event
    happened: str
    lag_seconds: float | None
    gap_seconds: float | None
    what: str
    where: str
    moved: str | None
    notes: Sequence[str]
    is_void: bool


def timeline_lines(
    events: Sequence[Event], moves: Mapping[int, str] | None = None
) -> list[TimelineLine]:
    """Return the events' lines in the given order.

    `moves`: by version, the status that an event led to.
    """
    moves = moves or {}
    known = {event["event_id"]: event for event in events}
    readings = _readings(events)
    gaps = _gaps(events)
    return [
        TimelineLine(
            event=event,
            happened=carrier_time(event),
            lag_seconds=_lag_seconds(event),
            gap_seconds=gaps.get(event["version"]),
            what=what_it_says(event),
            where=place_of(event),
            moved=moves.get(event["version"]),
            notes=list(_notes(event, known, readings)),
            is_void=_is_void(event, readings),
        )
        for event in events
    ]


def causes_of(transitions: Sequence[Event], recorded: Sequence[Event]) -> dict[int, int]:
    """Return by a transition's sequence the version of its cause.

    The cause is the last event of its message with the new status. `recorded`: the audit's
    events. A transition itself names the last event of its message, of any status.
    """
    of_message: dict[str, list[Event]] = defaultdict(list)
    for event in recorded:
        of_message[event["message_id"]].append(event)
    causes = {}
    for one in transitions:
        saying = [
            event["version"]
            for event in of_message[one["message_id"]]
            if event["status"] == one["to"]
        ]
        causes[one["sequence"]] = max(saying, default=one["sequence"])
    return causes


def what_it_says(event: Event) -> str:
    """Return its statement in a few words, the first with a capital."""
    said = spaced(event["status"]) if event["status"] else ""
    match event["kind"]:
        case Kind.UNMAPPED:
            said = f"unknown code {event['carrier_code'] or ''}".strip()
        case Kind.CORRECTION:
            said = f"correction: {said}" if said else "correction"
        case Kind.INFO if event["estimated_delivery"]:
            said = f"estimated delivery {event['estimated_delivery']}"
        case Kind.INFO:
            said = said or "information"
    said = f"{said}: {spaced(event['reason'])}" if event["reason"] else said
    return said[:1].upper() + said[1:]


def place_of(event: Event) -> str:
    """Return the place as exactly as the carrier printed it, and this reader may see it."""
    place = event["location"]
    return ", ".join(
        place[part]
        for part in ("facility", "city", "region", "postal_code", "country")
        if place[part]
    )


def town_of(place: Event | None) -> str:
    """Return the town of a place, short enough for a list.

    Else the carrier's own name of the place.
    """
    if place is None:
        return ""
    names = [place[part] for part in ("city", "region", "country") if place[part]]
    return ", ".join(names[:2]) or place["facility"] or ""


def conflict_sentences(conflict: Event, known: Event | None) -> list[str]:
    """Return the contradiction and its outcome. `known`: the earlier event, if at hand."""
    sentences = [
        (
            "The carrier sent an event under an id that it had used before"
            f" ({conflict['event_id']}), with other facts."
        ),
        "What came first counts; this changed nothing.",
    ]
    if conflict["shipment_id"] != conflict["claimed_shipment_id"]:
        sentences.append("One names this shipment, the other another one.")
    elif known is not None:
        sentences += list(_differences(known, conflict))
    if (conflict["count"] or 0) > 1:
        sentences.append(f"It was said {conflict['count']:,} times.")
    return sentences


def flag_sentences(flags: Sequence[str]) -> list[tuple[str, str]]:
    """Return each flag with its meaning: an oddity, or a missing event."""
    return [(spaced(flag), REMARKS.get(flag, "")) for flag in flags]


def seals_of(events: Sequence[Event]) -> list[datetime]:
    """Return the instants at which its entries became final, in order.

    Our knowledge changed at each of them. Up to the full millisecond, the precision of a
    browser's form.
    """
    return sorted(
        {
            _full_millisecond(datetime.fromisoformat(event["sealed_at"]))
            for event in events
            if event["sealed_at"]
        }
    )


def _full_millisecond(at: datetime) -> datetime:
    return at + timedelta(microseconds=-at.microsecond % 1000)


def _differences(first: Event, second: Event) -> Iterator[str]:
    for name, said in _COMPARED.items():
        if first[name] != second[name]:
            yield f"First {said} was {_shown(first, name)}, then {_shown(second, name)}."
    if place_of(first) != place_of(second):
        before, after = (place_of(event) or "not stated" for event in (first, second))
        yield f"First the place was {before}, then {after}."


def _shown(event: Event, name: str) -> str:
    if name == "occurred_at":
        return carrier_time(event)
    return (
        spaced(event[name])
        if name in {"status", "reason"} and event[name]
        else event[name] or "not stated"
    )


def _gaps(events: Sequence[Event]) -> dict[int, float]:
    """Return by version the time since the scan before; events are in timeline order."""
    scans = [event for event in events if event["kind"] == Kind.SCAN and _has_clock(event)]
    # the order may rest on finer grounds than the printed times, which then do not differ
    return {
        event["version"]: gap.total_seconds()
        for before, event in pairwise(scans)
        if (gap := _at(event) - _at(before)) > timedelta(0)
    }


def _at(event: Event) -> datetime:
    return datetime.fromisoformat(event["occurred_at"])


def _has_clock(event: Event) -> bool:
    return not (event["time_precision"] == "day" or event["tz_source"] == "received")


def _lag_seconds(event: Event) -> float | None:
    if not _has_clock(event):
        return None
    return (datetime.fromisoformat(event["recorded_at"]) - _at(event)).total_seconds()


def _readings(events: Sequence[Event]) -> Mapping[str, str | None]:
    """Return the status that each scan still has after all corrections."""
    facts = {
        event["event_id"]: fact_from_canonical({**event, "raw": _raw(event)}) for event in events
    }
    return {fact.event_id: fact.status for fact in correct(facts).facts if fact.kind is Kind.SCAN}


def _raw(event: Event) -> dict[str, str | None]:
    """Split type and code, which the API joins."""
    first, slash, rest = (event["carrier_code"] or "").partition("/")
    return (
        {"type": first, "code": rest.partition("/")[0]}
        if slash
        else {"type": None, "code": first or None}
    )


def _is_void(event: Event, readings: Mapping[str, str | None]) -> bool:
    return (
        event["kind"] == Kind.SCAN and bool(event["status"]) and not readings.get(event["event_id"])
    )


def _notes(
    event: Event, known: Mapping[str, Event], readings: Mapping[str, str | None]
) -> Iterator[str]:
    if event["kind"] == Kind.CORRECTION:
        yield _correction(event, known)
    elif event["kind"] == Kind.UNMAPPED:
        yield "We do not know this code yet: the status stayed as it was."
    elif _is_void(event, readings):
        yield "Taken back later: it no longer counts."
    elif (
        event["kind"] == Kind.SCAN
        and event["status"]
        and (now := readings[event["event_id"]]) != event["status"]
    ):
        yield f"Corrected later: it now reads {spaced(now or '')}."
    if event["by_category"]:
        yield "We do not know the code; we read the carrier's own category of it."
    if (anchor := known.get(event["anchor"] or "")) and event["kind"] == Kind.INFO:
        yield f"Came later, about “{what_it_says(anchor)}” of {carrier_time(anchor)}."


def _correction(event: Event, known: Mapping[str, Event]) -> str:
    target = known.get(event["corrects"] or "")
    what = (
        "an earlier statement"
        if target is None
        else f"“{what_it_says(target)}” of {carrier_time(target)}"
    )
    if event["event_id"].startswith(OWN_PREFIX):
        return f"We read {what} again, with a later version of our reader" + (
            f": it says {spaced(event['status'])}."
            if event["status"]
            else ": it says nothing of the status."
        )
    return (
        f"The carrier corrected {what}: {spaced(event['status'])}."
        if event["status"]
        else f"The carrier took back {what}."
    )
