"""Redaction of log lines: a list of keys, each with the shape of its values. Pure; the last step.

The list is the control, the nets over free words are a second line only. An exception is described
by its type, its code and the path through the code, never by its text, since that may quote a
payload; only our own packages' messages are shown, because they hold no value of a message.
"""

import errno
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from pathlib import PurePath
from traceback import walk_tb
from types import TracebackType
from typing import Final
from uuid import UUID

# Begin each line, so that lines can be read down a column.
FIRST: Final = ("timestamp", "level", "process", "event")
MASK: Final = "[redacted]"
TEXT_LENGTH_MAX: Final = 300
FRAMES_MAX: Final = 6
CAUSES_MAX: Final = 4
ITEMS_MAX: Final = 20
# From here on a number may be a tracking number.
INTEGER_MAX: Final = 10**10
OUR_PACKAGES: Final = frozenset({"statesvc", "events", "projections", "migrations"})

# E-mail addresses; phone numbers and other long runs of digits; words of eight and more signs with
# three digits, which is how tracking numbers look.
_NETS: Final = (
    re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    re.compile(r"\+?\d[\d ()./-]{6,}\d"),
    re.compile(
        r"(?<![0-9A-Za-z])(?=[0-9A-Za-z]*\d[0-9A-Za-z]*\d[0-9A-Za-z]*\d)[0-9A-Za-z]{8,"
        r"}(?![0-9A-Za-z])"
    ),
)

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_WORD = re.compile(r"[a-z*][a-z0-9_.:*-]{0,59}|\d{1,2}[a-z_]{1,30}|")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/*-]{0,79}|")
_ROUTE = re.compile(r"(/(v\d|[a-z_.-]+|\{[a-z_]+\}))+/?")
_WORKER = re.compile(
    r"[A-Za-z0-9.-]{1,64}-(ingress|api|worker|notifier|sealer)-\d{1,7}(-[0-9a-f]{8})?"
)
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_TRACKING_LIKE = re.compile(r"(?=(?:[0-9A-Za-z]*\d){6})[0-9A-Za-z]{10,}")
_NUMBER_TEXT = re.compile(r"-?\d{1,15}(\.\d{1,9})?")


def mask_text(text: str) -> str:
    """Mask addresses, phone numbers and tracking numbers in free words; one line, cut."""
    # cut before the patterns run: a hostile text must not cost time for each of its characters
    line = text.split("\n", 1)[0][:TEXT_LENGTH_MAX]
    for pattern in _NETS:
        line = pattern.sub(MASK, line)
    return line


def _matching(pattern: re.Pattern[str]) -> Callable[[str], str]:
    return lambda text: text if pattern.fullmatch(text) else mask_text(text)


_uuid = _matching(_UUID)
_word = _matching(_WORD)
_trace_id = _matching(_TRACE_ID)
_key_id = _matching(_KEY_ID)
_number = _matching(_NUMBER_TEXT)


def _label(text: str) -> str:
    """Return a label as it is, or masked.

    Ids, versions and names that we or an operator made up are short, without a look of tracking
    numbers.
    """
    return (
        text
        if _UUID.fullmatch(text) or (_LABEL.fullmatch(text) and not _TRACKING_LIKE.search(text))
        else mask_text(text)
    )


# All keys that a process may log, with the shape of their texts. A test checks every call in the
# tree.
KEYS: Final[Mapping[str, Callable[[str], str]]] = {
    # the line itself
    "event": mask_text,
    "level": _word,
    "timestamp": _label,
    "logger": _label,
    "process": _word,
    "dropped_keys": _number,
    "out_of_memory": _label,
    "epoch": _number,
    "error": lambda text: text[:2000],
    # who and where
    "role": _word,
    "worker": lambda text: text if _WORKER.fullmatch(text) else _label(text),
    "worker_id": lambda text: text if _WORKER.fullmatch(text) else _label(text),
    "task": _label,
    "pid": _number,
    "host": _label,
    "port": _number,
    "channel": _word,
    "pool": _word,
    "application": _word,
    # what it is about
    "carrier": _word,
    "carrier_id": _word,
    "message_id": _uuid,
    "trace_id": _trace_id,
    "shipment_id": _uuid,
    "subscription_id": _uuid,
    "dead_letter_id": _label,
    "notice_id": _number,
    "key_id": _key_id,
    "batch_id": _number,
    "token": lambda text: text if _UUID.fullmatch(text) else MASK,
    "queue": _word,
    "stage": _word,
    "kind": _word,
    "cause": _word,
    "failure": _word,
    "outcome": _word,
    "status": _word,
    "status_code": _number,
    "code": _label,
    "scope": _word,
    "sqlstate": _label,
    "error_type": _label,
    "constraint": _label,
    "normalizer": _label,
    "version": _label,
    "versions": _number,
    "migration": _label,
    "files": _label,
    "promise": _label,
    "since": _label,
    "month": _label,
    "partition": _label,
    "partitions": _label,
    "setting": _label,
    "method": _label,
    "route": lambda text: text if _ROUTE.fullmatch(text) else MASK,
    "signal": _word,
    "reason": mask_text,
    "why": mask_text,
    "detail": mask_text,
    "day": _label,
    "archive": _word,
    "period": _label,
    # how much
    "attempt": _number,
    "attempts": _number,
    "retries": _number,
    "claimed": _number,
    "settled": _number,
    "released": _number,
    "events": _number,
    "messages": _number,
    "batches": _number,
    "rows": _number,
    "stayed": _number,
    "count": _number,
    "bytes": _number,
    "in_flight": _number,
    "exit_code": _number,
    "seconds": _number,
    "delay_seconds": _number,
    "duration_ms": _number,
    "duration_seconds": _number,
    "grace_seconds": _number,
    "lag_seconds": _number,
}


def redact(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that may be shown; how many were not is under `dropped_keys`."""
    first = [key for key in FIRST if key in fields]
    shown: dict[str, object] = {}
    for key in (*first, *(key for key in fields if key not in FIRST)):
        # a key that is not listed is dropped, whatever it holds: the list is the control
        shape = KEYS.get(key)
        if shape is not None:
            shown[key] = _shown(fields[key], shape)
    dropped = len(fields) - len(shown)
    if dropped:
        shown["dropped_keys"] = dropped
    return shown


def _shown(value: object, shape: Callable[[str], str]) -> object:
    # by default only the type: an object's own text may hold anything
    shown: object = f"<{type(value).__qualname__}>"
    match value:
        case None | bool() | float():
            shown = value
        case int():
            shown = value if abs(value) < INTEGER_MAX else MASK
        case Enum():
            shown = shape(str(value.value))
        case str() | UUID():
            shown = shape(str(value))
        case datetime():
            shown = value.isoformat()
        case timedelta():
            shown = value.total_seconds()
        case BaseException():
            shown = describe(value)
        case list() | tuple() | set() | frozenset():
            shown = [_shown(item, shape) for item in list(value)[:ITEMS_MAX]]
        case _:
            pass
    return shown


def describe(error: BaseException) -> str:
    """Describe an exception as
    `Type[code] (our own text) at file:line in function < ..., from Cause ...`,
    innermost frame first.
    """
    described: list[str] = []
    current: BaseException | None = error
    seen: set[int] = set()
    # causes can form a circle, where an error is raised again from its own context
    while current is not None and id(current) not in seen and len(described) < CAUSES_MAX:
        seen.add(id(current))
        described.append(_describe_one(current))
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    return ", from ".join(described)


def _describe_one(error: BaseException) -> str:
    kind = type(error)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    code = _code(error)
    text = (
        f" ({mask_text(str(error))})"
        # a library's text may quote a row or a payload; ours name places and ids only
        if kind.__module__.partition(".")[0] in OUR_PACKAGES and str(error)
        else ""
    )
    members = (
        f" of {'; '.join(describe(each) for each in error.exceptions[:3])}"
        if isinstance(error, BaseExceptionGroup)
        else ""
    )
    return f"{name}{f'[{code}]' if code else ''}{text}{members}{_places(error.__traceback__)}"


def _code(error: BaseException) -> str | None:
    """Return a PostgreSQL SQLSTATE or the name of an operating system error: both closed lists."""
    sqlstate = getattr(error, "sqlstate", None)
    # a foreign exception may call something else so
    if isinstance(sqlstate, str) and re.fullmatch(r"[0-9A-Z]{5}", sqlstate):
        return sqlstate
    if isinstance(error, OSError) and isinstance(error.errno, int):
        return errno.errorcode.get(error.errno, str(error.errno))
    return None


def _places(traceback: TracebackType | None) -> str:
    frames = [(frame.f_code, line) for frame, line in walk_tb(traceback)]
    if not frames:
        return ""
    places = [
        f"{_short(code.co_filename)}:{line} in {code.co_name}"
        # the innermost frames, where it happened: the outer ones are the same for every error
        for code, line in reversed(frames[-FRAMES_MAX:])
    ]
    return " at " + " < ".join(places)


def _short(filename: str) -> str:
    # without the folder of the installation, which may be a person's
    return "/".join(PurePath(filename).parts[-3:])
