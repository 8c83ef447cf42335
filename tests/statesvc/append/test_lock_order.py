"""The append takes its locks in the order that ARCHITECTURE.md says."""

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

from events.identity.recipe import Recipe
from events.identity.recipes import RECIPES
from statesvc.database.pipelined import Pipeline, PipelinedRows
from tests.world.shop import CARRIER_ID, Shop, says

ROOT = Path(__file__).parents[3]
LOCKED = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM|FROM) statesvc\.(\w+)")
TAKES_LOCKS = re.compile(r"INSERT INTO|UPDATE|DELETE FROM")
ADDED = frozenset({"outbox"})
"""The append only adds rows."""


def lock_order() -> list[str]:
    section = (ROOT / "ARCHITECTURE.md").read_text().split("## Lock order")[1]
    (line,) = (line for line in section.splitlines() if " > " in line)
    return [re.findall(r"`(\w+)`", part)[0] for part in line.split(" > ")]


def locked_by(query: str) -> list[str]:
    if "statesvc.hold_leased" in query:
        return ["inbox"]
    return LOCKED.findall(query) if TAKES_LOCKS.search(query) else []


async def test_the_append_takes_its_locks_in_the_stated_order(shop: Shop) -> None:
    order, taken = lock_order(), list[str]()
    execute = Pipeline.execute

    async def recording(
        self: Pipeline, query: Any, params: Any = None, **options: Any
    ) -> PipelinedRows:
        taken.extend(table for table in locked_by(query) if table in order and table not in ADDED)
        return await execute(self, query, params, **options)

    await shop.say({"number": "A", "status": "picked_up", "native_id": "1"})
    with patch.dict(
        RECIPES,
        {
            CARRIER_ID: Recipe(
                time="local",
                codes=("code",),
                also=(Recipe(time="local", place=("city", "country")),),
            )
        },
    ):
        await shop.push(
            says(
                {"number": "A", "status": "in_transit", "minute": 5, "code": "M"},
                {"number": "A", "status": "delivered", "minute": 9, "native_id": "1"},
                {"number": "NEW", "kind": "unmapped", "minute": 6, "code": "UNKNOWN"},
                rejected=1,
                named=["ONLY"],
            )
        )
        with patch.object(Pipeline, "execute", recording):
            await shop.work()
    firsts = list(dict.fromkeys(taken))
    assert firsts == sorted(firsts, key=order.index)
    assert set(firsts) == {"inbox", "stream", "conflict_key", "event_key", "dead_letter"}
    assert (
        await shop.value("SELECT count(*) FROM statesvc.event_key WHERE alias_of IS NOT NULL") > 0
    ), "an alias was among it"
