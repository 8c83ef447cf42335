"""Whose work a wake-up announces: the carriers that its payload names, or anybody's. Pure.

A worker with its hands full asks at once for what a carrier sent that it does not have in hand; a wake-up that names only carriers which
it is busy with costs it nothing.
"""

from typing import Final

Named = frozenset[str] | None
"""Carriers; None: anybody."""

ANYBODY: Final[Named] = None
_NAMED_MAX: Final = 32
"""More than these are nobody in particular: a payload has 8,000 bytes at most."""


def together(one: Named, other: Named) -> Named:
    """Both wake-ups in one."""
    if one is None or other is None:
        return ANYBODY
    return one | other


def written(named: Named) -> str:
    """As a payload: the names, comma-separated; empty for anybody."""
    if named is None or len(named) > _NAMED_MAX:
        return ""
    return ",".join(sorted(named))


def read(payload: str) -> Named:
    """What was written."""
    return frozenset(payload.split(",")) if payload else ANYBODY
