"""Summary of a shipment's page: a sentence, doubts, and the notified subscribers by statement.

Pure.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from events.vocabulary import Kind, Status
from projections.lifecycle import Flag
from statesvc.addons.console.shipment_lines import Event, TimelineLine, what_it_says
from statesvc.background.duration import duration
from statesvc.shipments.plain_names import spaced
from statesvc.shipments.printed_times import local_time, stated_instant, stated_time_in_a_sentence

_LAG_SECONDS_MIN: Final = 60.0
_STYLES: Final[Mapping[Status, str]] = {
    Status.UNKNOWN: "idle",
    Status.INFO_RECEIVED: "idle",
    Status.EXCEPTION: "warn",
    Status.DELIVERY_ATTEMPTED: "warn",
    Status.RETURNING: "warn",
    Status.RETURNED: "warn",
    Status.CANCELLED: "warn",
    Status.DELIVERED: "good",
    Status.LOST: "bad",
    Status.DESTROYED: "bad",
}


def status_style(status: str) -> str:
    return _STYLES.get(Status(status), "move")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSentence:
    """The sentence on top: status, time, place, and our delay."""

    what: str
    when: str
    where: str
    later: str
    there: str = ""
    """Local time of the place, computed, if the carrier stated the time of another zone."""


def status_sentence_of(
    shipment: Mapping[str, Any], lines: Sequence[TimelineLine]
) -> StatusSentence:
    """Return the sentence for the statement that made the status, if at hand.

    `lines`: in timeline order.
    """
    line = _cause(shipment["status"], lines)
    what = spaced(shipment["status"]) + (
        f" ({spaced(shipment['reason'])})" if shipment["reason"] else ""
    )
    what = what[:1].upper() + what[1:]
    if line is None:
        since = shipment["status_since"]
        return StatusSentence(
            what=what,
            when="" if since is None else f"since {stated_instant(since)}",
            where="",
            later="",
        )
    when = stated_time_in_a_sentence(line.event)
    return StatusSentence(
        what=what,
        when=when if shipment["terminal"] else f"since {when}",
        where=line.where,
        there=local_time(line.event, line.event["location"]),
        later=duration(line.lag_seconds)
        if line.lag_seconds is not None and line.lag_seconds > _LAG_SECONDS_MIN
        else "",
    )


def _cause(status: str, lines: Sequence[TimelineLine]) -> TimelineLine | None:
    moved = [line for line in lines if line.moved == status and line.event["status"] == status]
    saying = [
        line
        for line in lines
        if line.event["status"] == status and line.event["kind"] == Kind.SCAN and not line.is_void
    ]
    found = moved or saying
    return found[-1] if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """A statement that speaks against the status, in a sentence."""

    version: int
    sentence: str


def contradicting_scans(
    shipment: Mapping[str, Any], lines: Sequence[TimelineLine]
) -> list[Objection]:
    """Return contradicting scans after the end, if the shipment is flagged for them."""
    cause = _cause(shipment["status"], lines)
    if Flag.CONTRADICTED not in shipment["flags"] or cause is None:
        return []
    ended = datetime.fromisoformat(cause.event["occurred_at"])
    return [
        Objection(
            version=line.event["version"], sentence=_sentence(line, ended, shipment["status"])
        )
        for line in lines
        if _is_other(line, cause) and datetime.fromisoformat(line.event["occurred_at"]) > ended
    ]


def _is_other(line: TimelineLine, cause: TimelineLine) -> bool:
    event = line.event
    return (
        event["kind"] == Kind.SCAN
        and bool(event["status"])
        and not line.is_void
        and event["status"] != cause.event["status"]
    )


def _sentence(line: TimelineLine, ended: datetime, status: str) -> str:
    after = duration((datetime.fromisoformat(line.event["occurred_at"]) - ended).total_seconds())
    place = f" in {line.where}" if line.where else ""
    return (
        f"{after} after “{spaced(status)}” the carrier scanned the parcel"
        f" “{what_it_says(line.event)}”{place} (statement {line.event['version']})."
        f" The status stays “{spaced(status)}”."
    )


def late_statements(lines: Sequence[TimelineLine]) -> Mapping[int, int]:
    """Return by version the latest earlier statement with a later time.

    `lines`: in timeline order.
    """
    late: dict[int, int] = {}
    for place, line in enumerate(lines):
        version = line.event["version"]
        before = [
            other.event["version"]
            for other in lines[place + 1 :]
            if other.event["version"] < version
        ]
        if before and line.event["kind"] == Kind.SCAN:
            late[version] = max(before)
    return late


def notified_changes(
    notifications: Sequence[Event], causes: Mapping[int, int]
) -> Mapping[int, Sequence[str]]:
    """Return by version the notified subscribers, in sentences."""
    told: dict[int, list[str]] = defaultdict(list)
    for one in notifications:
        if one["sequence"] > 0:
            told[causes.get(one["sequence"], one["sequence"])].append(_told(one))
    return told


def _told(notification: Event) -> str:
    name = notification["receiver"] or f"subscription {str(notification['subscription_id'])[:8]}"
    attempts = notification["attempts"]
    if notification["covered_by"]:
        return f"{name}: left out, that of statement {notification['covered_by']} stood for it"
    if notification["outcome"] == "delivered" and attempts:
        last = attempts[-1]
        at = datetime.fromisoformat(last["started_at"]).astimezone(UTC)
        answer = f"{last['status_code']} in " if last["status_code"] else ""
        return f"{name} was notified {at:%d %b %H:%M:%S} ({answer}{last['duration_ms']:,} ms)"
    if notification["outcome"]:
        outcome = spaced(notification["outcome"])
        return f"{name} was not notified: {outcome} after {len(attempts)} tries"
    return f"{name} is still to be notified"


def delivery_times(notifications: Sequence[Event]) -> Iterator[str]:
    """Yield the time of each delivery."""
    for one in notifications:
        if one["outcome"] == "delivered" and one["attempts"]:
            yield one["attempts"][-1]["started_at"]
