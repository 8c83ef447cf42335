"""Checks that add-ons bring to `statesvc status`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from psycopg import AsyncConnection

from statesvc.health.finding import Finding


class OwnCheck(NamedTuple):
    """It reads for itself what it judges. `well`: what doctor says where nothing is found."""

    about: str
    well: str
    find: Callable[[AsyncConnection[Any]], Awaitable[Sequence[Finding]]]
