"""Preview of other rules for waiting shipments: moved deadlines and immediate observations.

It changes no data. The newest are checked first, until all were or the time is up: then the counts
are lower bounds.
"""

import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from pydantic import BaseModel, Field

from projections.expectations import ExpectationRules, next_deadline, passed
from projections.state import ShipmentState
from statesvc.addons.expectations.rule_changes import StatedBook, stated_rules
from statesvc.database.queries import queries
from statesvc.log.json_compression import decompress_json
from statesvc.shipments.expectation_rules import RuleScope

PAGE_ROWS: Final = 500
"""Some 30 ms of computing."""
SECONDS_MAX: Final = 8.0
_LAST_ID: Final = UUID(int=2**128 - 1)
_SQL = queries("statesvc.addons.expectations", "rule_preview")


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
