"""Costs of each statement for the server at the load of a day, as `pg_stat_statements` counts
it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from statesvc.database.queries import Queries
from tests.bench.bench import ROOT
from tests.bench.report import Row
from tests.bench.server import Place

PRELOADED: Final = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_planning": "on",
}
"""The server's settings that this takes; they cost a few per cent, so the figures without them
are measured elsewhere.
"""
BEGIN: Final = (
    "CREATE EXTENSION IF NOT EXISTS pg_stat_statements",
    "SELECT pg_stat_statements_reset()",
)
_STATEMENTS: Final = """
SELECT query, calls, total_plan_time + total_exec_time FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_statements%'
ORDER BY 3 DESC
"""
_COMMENT: Final = re.compile(r"--.*")
_VALUE: Final = re.compile(r"%\(\w+\)[sbt]|\$\d+|'[^']*'|\b\d+(?:\.\d+)?\b|\b(?:true|false|NULL)\b")
_SHOWN_CHARACTERS: Final = 60
_SHOWN_MILLISECONDS_MIN: Final = 0.01
"""A message."""


class StatementCost(NamedTuple):
    """`name`: of the query and its file; the statement's beginning where it has none."""

    name: str
    calls: int
    milliseconds: float


async def read_statement_costs(place: Place) -> list[StatementCost]:
    """Return what was counted since `BEGIN`, the dearest first."""
    return [
        StatementCost(_name_of(query), calls, milliseconds)
        for query, calls, milliseconds in await place.rows(_STATEMENTS)
    ]


def _name_of(query: str) -> str:
    skeleton = _skeleton(query)
    return _names().get(skeleton, skeleton[:_SHOWN_CHARACTERS])


@cache
def _names() -> dict[str, str]:
    """Return the names of queries by their skeletons."""
    return {
        _skeleton(text): f"{file.stem}.{name}"
        for file in sorted(Path(ROOT, "statesvc").rglob("*.sql"))
        if "-- name: " in file.read_text("utf-8")
        for name, text in Queries(file.read_text("utf-8"), str(file)).items()
    }


def _skeleton(query: str) -> str:
    """Return the statement without comments and values, which the server takes out."""
    return " ".join(_VALUE.sub("?", _COMMENT.sub("", query)).split())


def statement_rows(what: str, costs: Sequence[StatementCost], messages: int) -> list[Row]:
    """List the statements that cost most, a message."""
    calls, milliseconds = (
        sum(cost.calls for cost in costs),
        sum(cost.milliseconds for cost in costs),
    )
    first = Row(what, f"{calls / messages:.2f} a message, {milliseconds / messages:.2f} ms")
    return [first, *_dear_rows(costs, messages)]


def _dear_rows(costs: Sequence[StatementCost], messages: int) -> Iterator[Row]:
    for cost in costs:
        of_message = cost.milliseconds / messages
        if of_message >= _SHOWN_MILLISECONDS_MIN:
            each = cost.milliseconds / cost.calls
            yield Row(
                f"... {cost.name}",
                f"{cost.calls / messages:.2f} a message, {each:.3f} ms each, {of_message:.3f} ms a"
                " message",
                figure=of_message,
            )
