"""Codes of carriers and their mappings in words, alike on the command line and the console."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from statesvc.http.views import Answer, Denied, counted
from statesvc.repair.dead_letters.dead_letter import SENTENCES, Obstacle

# Takes the code's place in lists if the carrier prints only a text (`events.clear_part.TEXT`).
TEXT: Final = "text"
_PARTS: Final = ("raw_type", "raw_code", "raw_reason", "raw_text")
NO_EVENT: Final = (
    "no event has this code, so mapping it would change nothing: a code is compared as it is"
    " written, it is no pattern"
)


def code(row: Answer) -> str:
    """Return type, code, reason and text, with texts where they are known."""
    texts = row.get("texts") or {}
    labels = ("", "", "reason ", "text ")
    parts = ((label, row.get(name)) for label, name in zip(labels, _PARTS, strict=True))
    return "/".join(f"{label}{texts.get(part, part)}" for label, part in parts if part is not None)


def _meaning(meaning: Mapping[str, Any]) -> str:
    return " ".join(
        word for word in (meaning["status"] or meaning["kind"], meaning["reason"]) if word
    )


def meaning(row: Answer) -> str:
    return _meaning(row["meaning"]) if row["meaning"] else "as the normalizer says"


def shipped(row: Answer) -> str | None:
    return _meaning(row["shipped"]) if row["shipped"] else None


def redundant(row: Answer) -> str | None:
    return "redundant" if row["redundant"] else None


def listed_code(row: Answer) -> str:
    return row["carrier_code"] or "(no code)"


def read_by(row: Answer) -> str:
    return str(row["read"]).replace("_", " ")


def mapped(row: Answer) -> str | None:
    return f"{_meaning(row['mapped'])}: replay its dead letter" if row["mapped"] else None


def proposed(row: Answer) -> str | None:
    return (
        f"{_meaning({'kind': '', **row['proposed']})}: {row['proposed']['why']}"
        if row["proposed"]
        else None
    )


def map_commands(answer: Answer) -> Iterator[str]:
    """Yield the command that maps each code.

    Of a text only its place is listed: a history has the text itself.
    """
    unmapped = [row for row in answer["items"] if row["mapped"] is None]
    if unmapped:
        yield "to say what one means (first it shows the events):"
    for row in unmapped:
        parts = (("--type", row["raw_type"]), ("--code", row["raw_code"]))
        named = [
            f"{option} {'TEXT' if part == TEXT else shlex.quote(part)}"
            for option, part in parts
            if part is not None
        ]
        meant = row["proposed"] or {"status": "STATUS", "reason": None}
        reason = [f"--reason {meant['reason']}"] if meant["reason"] else []
        words = [row["carrier_id"], *(named or ["--text TEXT"]), f"--status {meant['status']}"]
        yield " ".join(["  statesvc carriers map", *words, *reason])


def previewed(answer: Answer) -> Iterator[str]:
    """Describe the mapping. `answer`: of the preview, with its request."""
    now, then = answer["in_effect"], answer.get("meaning")
    if then is None and now is None:
        yield Denied("no mapping of the code is in effect: the normalizer reads it")
    yield (
        f"now {'the normalizer reads it' if now is None else f'read as {_meaning(now)}'};"
        " would be read"
        f" {'as the normalizer says' if then is None else f'as {_asked(then)}'}"
    )
    events, shipments, messages = (
        counted(answer[name], name.removesuffix("s"))
        for name in ("events", "shipments", "messages")
    )
    least = "at least " if answer["counts_capped"] else ""
    yield f"{least}{events} of {shipments} in {messages} have the code"
    if then is not None and not answer["events"] and not answer.get("force"):
        yield Denied(f"{NO_EVENT}; --force maps it all the same")


def _asked(meaning: Mapping[str, Any]) -> str:
    return _meaning({"kind": "scan", "status": None, "reason": None, **meaning})


def in_effect(answer: Answer) -> str:
    return f"revision {answer['revision']}; in effect at the next claim"


EARLIER: Final = (
    "earlier messages: statesvc dead-letters replay --cause unknown_code, or statesvc carriers"
    " renormalize"
)


def reread(answer: Answer) -> Iterator[str]:
    yield (
        f"{counted(answer['messages'], 'message')} read again:"
        f" {counted(answer['corrected'], 'event')} corrected, "
        f"{answer['transitions']:,} changes of status,"
        f" {counted(answer['notifications'], 'notification')}"
    )
    if answer["unreadable"]:
        yield f"{counted(answer['unreadable'], 'event')} left as on record: their messages are gone"
    if answer["dead_letter_id"] is not None and answer["done"]:
        obstacle = answer["obstacle"]
        left = "is settled" if obstacle is None else f"stays open: {SENTENCES[Obstacle(obstacle)]}"
        yield f"dead letter {answer['dead_letter_id']} {left}"


def renormalized(answer: Answer) -> Iterator[str]:
    would = "would be " if answer["dry_run"] else ""
    yield (
        f"{answer['messages']} messages with {answer['events']} events read again, "
        f"{answer['unchanged']} as before"
    )
    yield (
        f"{answer['corrected']} {would}corrected, {answer['retracted']} {would}taken back, "
        f"{answer['added']} {would}added"
    )


def left_as_read(answer: Answer) -> Iterator[str]:
    if answer["codes"]:
        yield (
            f"{counted(len(answer['codes']), 'code')} known now: `statesvc dead-letters replay"
            " --cause unknown_code` resolves their dead letters"
        )
    if answer["notifications"]:
        yield f"{answer['notifications']} notifications"
    if answer["unreadable"]:
        yield (
            f"{answer['unreadable']} could not be read again: their message was erased or is stored"
            " no longer, their codes alone do not say what they mean, and no mapping names them."
            " They stand as they were read."
        )
    for name, count in answer["beyond"].items():
        yield (
            f"{count} differ in {name}, which no correction can change: they stand as they"
            " were read"
        )


def teach_path(row: Answer) -> str:
    """Return the form that maps the code of an event, or of a row."""
    meant = row.get("proposed") or {}
    given = {name: row.get(name) for name in _PARTS[:3]} | {
        f"meaning.{name}": meant.get(name) for name in ("status", "reason")
    }
    return f"/console/carriers/{row['carrier_id']}/teach?{_query(given)}"


def teach_words(row: Answer) -> str:
    return f"Map as {row['proposed']['status']}" if row["proposed"] else "Map this"


def unmap_path(row: Answer) -> str:
    """Return the form that takes a mapping back; a text is not in it, because it is sealed."""
    texts = row.get("texts") or {}
    given = {name: texts.get(row[name], row[name]) for name in _PARTS}
    if row["raw_text"] is not None and not texts:
        given["raw_text"] = None
    return f"/console/carriers/{row['carrier_id']}/unmap?{_query(given)}"


def unmap_words(row: Answer) -> str | None:
    return "Take back" if row["meaning"] else None


def _query(given: Mapping[str, Any]) -> str:
    return urlencode({name: value for name, value in given.items() if value})
