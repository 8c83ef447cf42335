"""Lengths of time for people."""

from typing import Final

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float, *, units: int = 2) -> str:
    """Format seconds for people, in two units at most, or in the largest alone."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    left = int(seconds)
    parts: list[str] = []
    for size, unit in _UNITS:
        if left >= size or parts:
            parts.append(f"{left // size} {unit}")
            left %= size
        if len(parts) == units:
            break
    return " ".join(part for part in parts if not part.startswith("0 ")) or "0 s"
