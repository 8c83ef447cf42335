"""What operators say is expected of a carrier's shipments: stated, an entry of the log, in effect with the next append.

A row says what differs from what is wider: a carrier's from the row of all carriers (`*`), that one from the service's defaults.
Shipments that wait already get their due times by it a page at a time (`rearm`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from psycopg import AsyncConnection
from psycopg.rows import class_row

from projections.expectations import DEFAULT_RULES, ExpectationRules
from statesvc.database.queries import queries
from statesvc.log.actions import record_action
from statesvc.shipments.expectation_rules import ALL_CARRIERS, DEFAULTS, RuleBook

NEVER: Final = "never"
_SQL = queries("statesvc.expectations", "rule_changes")
Connection = AsyncConnection[Any]


class RulesChangedError(RuntimeError):
    """Others stated rules of the carrier since the revision that the caller knows."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"revision {revision} was stated meanwhile" if revision else "the carrier has no rules of its own")
        self.revision = revision


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRules:
    """A row. `rules`: what differs from what is wider; `is_applied`: all unfinished shipments have their due times by it."""

    carrier_id: str
    revision: int = 0
    rules: Mapping[str, Any]
    changed_at: datetime | None = None
    changed_by: str | None = None
    why: str = ""
    is_applied: bool = True


@dataclass(frozen=True, slots=True)
class StatedBook:
    """All rows, by carrier."""

    rows: Mapping[str, StatedRules]

    def of(self, carrier_id: str) -> StatedRules:
        """A carrier's row; revision 0 where nothing was ever stated."""
        return self.rows.get(carrier_id) or StatedRules(carrier_id=carrier_id, rules={})

    def inherited(self, carrier_id: str) -> ExpectationRules:
        """What holds where the carrier's row says nothing."""
        return DEFAULT_RULES if carrier_id == ALL_CARRIERS else self.book.default

    def replaced(self, carrier_id: str, rules: Mapping[str, Any]) -> "StatedBook":
        """If rules of a carrier were stated."""
        return StatedBook({**self.rows, carrier_id: StatedRules(carrier_id=carrier_id, rules=rules)})

    @property
    def book(self) -> RuleBook:
        """In effect."""
        book = DEFAULTS
        for carrier_id in sorted(self.rows, key=lambda each: (each != ALL_CARRIERS, each)):
            book = book.changed(carrier_id, self.rows[carrier_id].rules, revision=self.rows[carrier_id].revision)
        return book


async def stated_rules(connection: Connection) -> StatedBook:
    """All that was stated."""
    cursor = connection.cursor(row_factory=class_row(StatedRules))
    await cursor.execute(_SQL["stated_rules"])
    return StatedBook({row.carrier_id: row for row in await cursor.fetchall()})


async def state_rules(
    connection: Connection, carrier_id: str, rules: Mapping[str, Any], *, why: str, actor: str, replaces: int | None = None
) -> int:
    """Replaces what is stated of a carrier (`*`: of all); answers the revision. An operator action.

    `rules`: hours, None for never, by the names of `ExpectationRules`; what is left out is inherited. `replaces`: the revision that the
    caller knows, 0 for none; RulesChangedError where another one is there.
    """
    async with connection.transaction():
        await connection.execute(_SQL["lock_rules"])
        before = (await stated_rules(connection)).of(carrier_id).revision
        if replaces not in (None, before):
            raise RulesChangedError(before)
        stated = {"carrier_id": carrier_id, "rules": orjson.dumps(rules).decode(), "changed_by": actor, "why": why}
        row = await (await connection.execute(_SQL["put_rules"], stated)).fetchone()
        assert row is not None  # noqa: S101 - RETURNING of one row
        revision: int = row[0]
        details = {"why": why, "revision": revision, "replaces": before, **dict(named_hours(rules))}
        await record_action(connection, actor=actor, verb="state_expectations", target=f"carrier {carrier_id}", details=details)
    return revision


def named_hours(rules: Mapping[str, Any]) -> Sequence[tuple[str, int | str]]:
    """What rules say, each under one name: `stalled.in_transit` 96, `overdue` never."""
    flat = dict(rules)
    stalled = flat.pop("stalled", None) or {}
    named = [*((f"stalled.{status}", hours) for status, hours in stalled.items()), *flat.items()]
    return [(name, NEVER if hours is None else hours) for name, hours in sorted(named)]
