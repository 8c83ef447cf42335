"""Checks that add-ons bring to `statesvc status`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from psycopg import AsyncConnection

from statesvc.health.finding import Finding


class OwnCheck(NamedTuple):
    """A check that reads its own data. `ok_text`: doctor's line if it finds no fault."""

    about: str
    ok_text: str
    find: Callable[[AsyncConnection[Any]], Awaitable[Sequence[Finding]]]
