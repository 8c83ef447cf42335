"""A short log line for people: time, process, event and fields."""

from collections.abc import Mapping
from typing import Any, Final

from statesvc.telemetry.colour import Colour, coloured

_LEVELS: Final = {
    "warning": ("WARN", Colour.YELLOW),
    "error": ("ERROR", Colour.RED),
    "critical": ("ERROR", Colour.RED),
}
_NAMED: Final = frozenset({"timestamp", "level", "process", "event"})
_PROCESS_WIDTH: Final = 8
_LEVEL_WIDTH: Final = 5
_LISTED_MAX: Final = 3


def short_line(fields: Mapping[str, Any], *, colour: bool) -> str:
    level, shade = _LEVELS.get(str(fields.get("level")), ("", None))
    about = (_about(name, value) for name, value in fields.items() if name not in _NAMED)
    parts = (
        (_time_of_day(str(fields.get("timestamp", ""))), Colour.DIM),
        (f"{fields.get('process', ''):<{_PROCESS_WIDTH}}", Colour.BLUE),
        (f"{level:<{_LEVEL_WIDTH}}", shade),
        (str(fields.get("event", "")), shade or Colour.BOLD),
        ("  ".join(about), None),
    )
    return " ".join(
        coloured(text, paint if colour else None) for text, paint in parts if text
    ).rstrip()


def _time_of_day(timestamp: str) -> str:
    return timestamp[11:19] or "--:--:--"


def _about(name: str, value: object) -> str:
    match value:
        case float():
            text = f"{value:.6g}"
        case list():
            text = ", ".join(map(str, value[:_LISTED_MAX])) + (
                f" and {len(value) - _LISTED_MAX} more" if len(value) > _LISTED_MAX else ""
            )
        case _:
            text = str(value)
    return f"{name}={text!r}" if " " in text or not text else f"{name}={text}"
