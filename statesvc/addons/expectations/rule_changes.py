"""Changes of operators' expectations: logged, in effect with the next append; and their preview.

A row holds the differences from the wider row: a service's from its carrier's, that from the row of
all carriers (`*`), that from our defaults. Waiting shipments get their due times by it a page at a
time (`rearm`).

A preview changes no data. It checks the newest shipments first, until all were or the time is up:
then its counts are lower bounds.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

import orjson
from psycopg import AsyncConnection
from psycopg.rows import class_row
from pydantic import BaseModel, Field

from projections.expectations import DEFAULT_RULES, ExpectationRules, next_deadline, passed
from projections.state import ShipmentState
from statesvc.database.queries import queries
from statesvc.log.actions import record_action
from statesvc.log.json_compression import decompress_json
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


# Some 30 ms of computing.
PAGE_ROWS: Final = 500
SECONDS_MAX: Final = 8.0
_LAST_ID: Final = UUID(int=2**128 - 1)


class RulePreview(BaseModel):
    """Effects of setting the rules now."""

    replaces: Annotated[
        int,
        Field(
            description="The revision that is there now: give it back when you state them. 0: none."
        ),
    ]
    shipments: Annotated[
        int,
        Field(
            description="Unfinished shipments of the carrier, and the service, that were looked at."
        ),
    ]
    rearmed: Annotated[
        int, Field(description="Of these, such as would be looked at at another time.")
    ]
    observed_at_once: Annotated[
        dict[str, int],
        Field(
            description=(
                "By kind: observations, and so notifications, that would follow at once, and do not"
                " today."
            )
        ),
    ]
    counts_capped: Annotated[
        bool, Field(description="Not all were looked at: the counts are lower bounds.")
    ]


async def preview_rules(
    connection: AsyncConnection[Any],
    scope: RuleScope,
    rules: Mapping[str, Any],
    *,
    seconds: float = SECONDS_MAX,
) -> RulePreview:
    """Preview rules as `state_rules` takes them."""
    stated = await stated_rules(connection)
    row = await (await connection.execute(_SQL["now"])).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    now: datetime = row[0]
    before: tuple[datetime, UUID] = (now + timedelta(days=1), _LAST_ID)
    counts = _PreviewCounts(stated, scope, rules, now)
    until = time.monotonic() + seconds
    while True:
        asked = {
            "carrier_id": scope.carrier_id,
            "before_recorded_at": before[0],
            "before_shipment_id": before[1],
            "limit": PAGE_ROWS,
        }
        rows = await (
            await connection.execute(_SQL["newest_unfinished"], asked, binary=True)
        ).fetchall()
        for recorded_at, _, of_carrier, state in rows:
            if state is not None:
                counts.add(of_carrier, ShipmentState.from_json(decompress_json(state)), recorded_at)
        is_last = len(rows) < PAGE_ROWS
        if is_last or time.monotonic() >= until:
            return RulePreview(
                replaces=stated.of(scope).revision,
                shipments=counts.shipments,
                rearmed=counts.rearmed,
                observed_at_once=dict(sorted(counts.observed_at_once.items())),
                counts_capped=not is_last,
            )
        before = rows[-1][:2]


class _PreviewCounts:
    def __init__(
        self, stated: StatedBook, scope: RuleScope, rules: Mapping[str, Any], now: datetime
    ) -> None:
        self.scope = scope
        self.present = stated.book
        self.proposed = stated.replaced(scope, rules).book
        self.now = now
        self.shipments = 0
        self.rearmed = 0
        self.observed_at_once: Counter[str] = Counter()

    def add(self, carrier_id: str, state: ShipmentState, recorded_at: datetime) -> None:
        if not self.scope.covers(carrier_id, state.service):
            return
        present, proposed = (
            self.present.of(carrier_id, state.service),
            self.proposed.of(carrier_id, state.service),
        )
        self.shipments += 1
        if next_deadline(state, present, recorded_at=recorded_at) != next_deadline(
            state, proposed, recorded_at=recorded_at
        ):
            self.rearmed += 1
        due = self._due(state, present, recorded_at)
        self.observed_at_once.update(self._due(state, proposed, recorded_at) - due)

    def _due(
        self, state: ShipmentState, rules: ExpectationRules, recorded_at: datetime
    ) -> set[str]:
        return {
            one.kind.value
            for one in passed(state, rules, recorded_at=recorded_at, now=self.now).deadlines
        }
