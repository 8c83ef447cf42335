"""Changes of operators' expectations: logged, in effect with the next append.

A row holds the differences from the wider row: a service's from its carrier's, that from the row of
all carriers (`*`), that from our defaults. Waiting shipments get their due times by it a page at a
time (`rearm`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from psycopg import AsyncConnection
from psycopg.rows import class_row

from projections.expectations import DEFAULT_RULES, ExpectationRules
from statesvc.database.queries import queries
from statesvc.log.actions import record_action
from statesvc.shipments.expectation_rules import (
    ALL_SERVICES,
    DEFAULTS,
    EVERYTHING,
    RuleBook,
    RuleScope,
)
from statesvc.shipments.rule_hours import named_hours

_SQL = queries("statesvc.addons.expectations", "rule_changes")
Connection = AsyncConnection[Any]


class RulesChangedError(RuntimeError):
    """Others stated rules of the same shipments since the revision that the caller knows."""

    def __init__(self, revision: int) -> None:
        super().__init__(
            f"revision {revision} was stated meanwhile"
            if revision
            else "no rules of its own are stated"
        )
        self.revision = revision


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRules:
    """A row.

    `rules`: the differences from the wider row; `is_applied`: all unfinished shipments have
    their due times by it.
    """

    carrier_id: str
    service: str = ALL_SERVICES
    revision: int = 0
    rules: Mapping[str, Any]
    changed_at: datetime | None = None
    changed_by: str | None = None
    why: str = ""
    is_applied: bool = True

    @property
    def scope(self) -> RuleScope:
        return RuleScope(self.carrier_id, self.service)


@dataclass(frozen=True, slots=True)
class StatedBook:
    rows: Mapping[RuleScope, StatedRules]

    def of(self, scope: RuleScope) -> StatedRules:
        """Return a row; revision 0 without any rules."""
        return self.rows.get(scope) or StatedRules(
            carrier_id=scope.carrier_id, service=scope.service, rules={}
        )

    def inherited(self, scope: RuleScope) -> ExpectationRules:
        """Return the rules in effect without the row."""
        return DEFAULT_RULES if scope == EVERYTHING else self.book.of(*scope.wider)

    def replaced(self, scope: RuleScope, rules: Mapping[str, Any]) -> "StatedBook":
        """Return the book with other rules in this scope."""
        return StatedBook({**self.rows, scope: replace(self.of(scope), rules=rules)})

    @property
    def book(self) -> RuleBook:
        book = DEFAULTS
        for scope in sorted(self.rows, key=lambda each: (each != EVERYTHING, each)):
            book = book.changed(scope, self.rows[scope].rules, revision=self.rows[scope].revision)
        return book


async def stated_rules(connection: Connection) -> StatedBook:
    cursor = connection.cursor(row_factory=class_row(StatedRules))
    await cursor.execute(_SQL["stated_rules"])
    return StatedBook({row.scope: row for row in await cursor.fetchall()})


async def state_rules(
    connection: Connection,
    scope: RuleScope,
    rules: Mapping[str, Any],
    *,
    why: str,
    actor: str,
    replaces: int | None = None,
) -> int:
    """Replace the rules of a carrier (`*`: of all) or of a service; return the revision.

    An operator action. `rules`: hours, None for never, by the names of `ExpectationRules`;
    hours that are left out are inherited. `replaces`: the revision that the caller knows, 0 for
    none; RulesChangedError if it is not the latest.
    """
    async with connection.transaction():
        await connection.execute(_SQL["lock_rules"])
        before = (await stated_rules(connection)).of(scope).revision
        if replaces not in (None, before):
            raise RulesChangedError(before)
        stated = {
            **scope._asdict(),
            "rules": orjson.dumps(rules).decode(),
            "changed_by": actor,
            "why": why,
        }
        row = await (await connection.execute(_SQL["put_rules"], stated)).fetchone()
        assert row is not None  # noqa: S101 - RETURNING of one row
        revision: int = row[0]
        details = {"why": why, "revision": revision, "replaces": before, **dict(named_hours(rules))}
        await record_action(
            connection, actor=actor, verb="state_expectations", target=str(scope), details=details
        )
    return revision
