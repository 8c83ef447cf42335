"""Dead letters in words, alike in `GET /v1/status`, on the command line and on the console."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from events.errors import Cause
from statesvc.background.duration import duration
from statesvc.http.views import Denied, counted
from statesvc.repair.dead_letters.dead_letter import IN_WORDS, SENTENCES, Obstacle, Way
from statesvc.seams import is_on

_CAUSE_WORDS: Final[Mapping[str, str]] = {
    Cause.UNREADABLE: "body cannot be read",
    Cause.REFUSED_XML: "XML that is never parsed",
    Cause.TOO_COMPLEX: "body is too complex",
    Cause.UNKNOWN_FORMAT: "format is not known",
    Cause.NO_TRACKING_NUMBER: "no tracking number",
    Cause.INVALID_EVENT: "event breaks the schema",
    Cause.REJECTED_MEMBER: "part of a message is no event",
    Cause.UNKNOWN_CODE: "unknown codes",
    Cause.CONTRADICTS_TEXT: "codes whose text says another status",
    Cause.WORKER_DIED: "its worker died at every attempt",
    Cause.BODY_MISSING: "body is missing",
    Cause.ATTEMPTS_EXHAUSTED: "every attempt failed",
    Cause.NORMALIZER_FAILED: "our reader failed",
    Cause.DELIVERY_EXHAUSTED: "receiver gave up",
}

_STILL_SECONDS: Final = 900


def cause_words(cause: str, detail: str = "") -> str:
    if cause == Cause.UNKNOWN_CODE and detail:
        return f"unknown code {detail}"
    if cause == Cause.CONTRADICTS_TEXT and detail:
        return f"code {detail}"
    return _CAUSE_WORDS.get(cause, cause.replace("_", " "))


def group_cause(group: Mapping[str, Any]) -> str:
    """Describe the cause of a group."""
    details = group.get("details", ())
    return cause_words(group["cause"], details[0]["detail"] if len(details) == 1 else "")


def group_details(group: Mapping[str, Any]) -> str:
    """Describe the most frequent trait of a group."""
    return "; ".join(
        f"{each['dead_letters']} x {each['detail'] or '(no detail)'}"
        for each in group["details"][:2]
    )


def still_coming(group: Mapping[str, Any]) -> str:
    """Say whether such dead letters were buried in the last quarter of an hour."""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(group["newest_at"])).total_seconds()
    return f"{'yes' if seconds < _STILL_SECONDS else 'no'}, {duration(max(seconds, 0.0))} ago"


def newest_of(group: Mapping[str, Any]) -> int:
    """Return the id of a group's newest dead letter."""
    return int(group["dead_letter_ids"][0])


def newest_path(group: Mapping[str, Any]) -> str:
    return f"/console/dead-letters/{newest_of(group)}"


def group_path(group: Mapping[str, Any]) -> str:
    """Return the console's page of a group. The API filters by no cause of a foreign worker."""
    names = ("kind", "carrier_id", *(["cause"] if group["cause"] in _CAUSE_WORDS else []))
    return f"/console/dead-letters/group?{urlencode({name: group[name] for name in names})}"


def subject(dead_letter: Mapping[str, Any]) -> str:
    """Return the unknown code, or the place in its message that could not be read."""
    code = "/".join(part for part in (dead_letter["raw_type"], dead_letter["raw_code"]) if part)
    return ": ".join(part for part in (code, dead_letter["detail"]) if part)


def code_page(dead_letter: Mapping[str, Any]) -> str:
    """Return the page of the events with an unknown code; empty if there is none."""
    # the add-on mappings serves it: without it the link would lead nowhere
    has_page = dead_letter["kind"] == "code" and is_on("mappings")
    return code_path(dead_letter) if has_page else ""


def code_path(row: Mapping[str, Any]) -> str:
    given = {name: value for name in ("raw_type", "raw_code") if (value := row.get(name))}
    return f"/console/carriers/{row['carrier_id']}/code?{urlencode(given)}"


def replay_words(dead_letter: Mapping[str, Any]) -> str:
    """Describe the effect of a replay, or the obstacle to it."""
    obstacle = dead_letter["resolution"] or dead_letter.get("obstacle")
    return SENTENCES[Obstacle(obstacle)] if obstacle else IN_WORDS[Way(dead_letter["way"])]


def would_replay(dead_letter: Mapping[str, Any]) -> Iterator[str]:
    yield from _possible(dead_letter, "replayed", dead_letter["obstacle"])
    yield f"{_one(dead_letter)}: {IN_WORDS[Way(dead_letter['way'])]}."
    if (code := dead_letter["occurrences"]) is not None:
        yield (
            f"It is about {counted(code['events'], 'event')} on"
            f" {counted(code['shipments'], 'shipment')}. Nothing changes before the code is mapped."
        )


def would_discard(dead_letter: Mapping[str, Any]) -> Iterator[str]:
    yield from _possible(dead_letter, "discarded", None)
    yield f"{_one(dead_letter)} is given up: {dead_letter['cause']}. {_LOST[dead_letter['kind']]}"


def _possible(dead_letter: Mapping[str, Any], what: str, obstacle: str | None) -> Iterator[Denied]:
    if found := dead_letter["resolution"] or obstacle:
        yield Denied(f"It cannot be {what}: {SENTENCES[Obstacle(found)]}.")


def _one(dead_letter: Mapping[str, Any]) -> str:
    return f"Dead letter {dead_letter['dead_letter_id']} of {dead_letter['carrier_id']}"


_LOST: Final[Mapping[str, str]] = {
    "message": "Its message takes no effect; its body is stored as long as any.",
    "code": "Its events stay unmapped. The code makes a new dead letter when it is pushed again.",
    "notification": "Its subscriber is not notified of this change.",
}


def replayed_one(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer["resolved"]:
        yield f"Dead letter {answer['dead_letter_id']} is replayed: {IN_WORDS[Way(answer['way'])]}."
    yield from _reread(answer)


def way_words(line: Mapping[str, Any]) -> str:
    return IN_WORDS[Way(line["way"])]


def obstacle_words(line: Mapping[str, Any]) -> str:
    """Count the dead letters with an obstacle to replay, and name it."""
    return "; ".join(
        f"{count:,}: {SENTENCES[Obstacle(each)]}" for each, count in line["obstacles"].items()
    )


def replayed_many(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer["dry_run"]:
        can = sum(line["replayable"] for line in answer["plan"])
        if not answer["remaining"]:
            yield Denied("No open dead letter matches.")
        elif not can:
            yield Denied("None of them can be replayed.")
        else:
            yield (
                f"{can:,} of {counted(answer['remaining'], 'dead letter')} can be replayed, oldest"
                " first."
            )
        return
    if answer["replayed"]:
        yield f"{counted(answer['replayed'], 'dead letter')} replayed."
    yield from _reread(answer)
    for obstacle, count in answer["refused"].items():
        # what another operator replayed meanwhile is done nevertheless
        kind = str if obstacle == Obstacle.REPLAYED else Denied
        yield kind(f"{count:,} not replayed: {SENTENCES[Obstacle(obstacle)]}.")
    if answer["remaining"]:
        yield (
            f"{counted(answer['remaining'], 'dead letter')} of the filter remain: look at what"
            " became of these before the rest."
        )
    if not answer["replayed"] and not answer["refused"] and not answer["remaining"]:
        yield "No open dead letter matches."


def _reread(answer: Mapping[str, Any]) -> Iterator[str]:
    if answer["messages"]:
        corrected, added = counted(answer["corrected"], "event"), counted(answer["added"], "event")
        yield (
            f"Read again: {counted(answer['messages'], 'message')}. Corrected: {corrected}; added:"
            f" {added}."
        )


def discarded_many(answer: Mapping[str, Any]) -> Iterator[str]:
    count = answer["remaining"] if answer["dry_run"] else answer["discarded"]
    if not count:
        yield Denied("No open dead letter matches.")
    elif answer["dry_run"]:
        yield (
            f"{counted(count, 'dead letter')} would be discarded, for good: listed as discarded,"
            " never replayed. Their messages take no effect, their notifications are not sent."
        )
    else:
        yield f"{counted(count, 'dead letter')} discarded."
