"""Names for the hours of rules: `stalled.in_transit` 96, `overdue` never."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

NEVER: Final = "never"
_STALLED: Final = "stalled."


def named_hours(rules: Mapping[str, Any]) -> Sequence[tuple[str, int | str]]:
    flat = dict(rules)
    stalled = flat.pop("stalled", None) or {}
    named = [*((f"{_STALLED}{status}", hours) for status, hours in stalled.items()), *flat.items()]
    return [(name, NEVER if hours is None else hours) for name, hours in sorted(named)]


def rules_of(hours: Mapping[str, int | str]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    for name, value in hours.items():
        group = rules.setdefault("stalled", {}) if name.startswith(_STALLED) else rules
        group[name.removeprefix(_STALLED)] = None if value == NEVER else value
    return rules
