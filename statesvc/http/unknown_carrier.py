"""The problem of a carrier_id that is none, with those that it may have been meant for."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from statesvc.http.problem import Code, Problem

_OFFERED_MAX: Final = 5


def no_such_carrier(carrier_id: str, carriers: Collection[str]) -> str:
    """Return a sentence that names carriers which are written much the same."""
    written = carrier_id.strip().lower().replace("-", "_").replace(" ", "_")
    similar = [known for known in carriers if known.startswith(written)] if written else []
    similar = similar[:_OFFERED_MAX] or get_close_matches(written, carriers, n=1)
    meant = f": did you mean {' or '.join(f'`{known}`' for known in similar)}?" if similar else ";"
    return f"no such carrier_id{meant} `statesvc carriers` lists them"


def unknown_carrier(carrier_id: str, carriers: Collection[str]) -> Problem:
    return Problem(Code.UNKNOWN_CARRIER, no_such_carrier(carrier_id, carriers))
