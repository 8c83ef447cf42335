"""A code is taught: its events are counted, and reading its history again corrects them."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.parsing.meanings import Meaning
from events.vocabulary import Kind, Status
from statesvc.addons.mappings.mapped_code import PrintedCode
from statesvc.addons.mappings.mapping_store import MappingChangedError, current_mappings, teach
from statesvc.addons.mappings.preview import MappingPreview, preview_mapping
from statesvc.addons.mappings.reread_code import CodeReread, RereadRequest
from statesvc.database.pool import SingleConnection
from statesvc.repair.dead_letters.dead_letter import Obstacle
from statesvc.repair.renormalize.history_walk import HistoryWalk, Rereader
from tests.statesvc.worker.log_check import check_log
from tests.world.shop import ACME, CARRIER_ID, Shop, says

ONWARD = Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY)
NEW = PrintedCode(carrier_id=CARRIER_ID, raw_type="T", raw_code="NEW")


@dataclass
class Operator:
    shop: Shop
    woken: int = 0

    async def preview(self, printed: PrintedCode) -> MappingPreview:
        code = printed.clear(self.shop.keyring.carrier_digest(CARRIER_ID))
        return await preview_mapping(self.shop.connection, self.shop.keyring, code)

    async def teach(self, printed: PrintedCode, meaning: Meaning | None, **more: Any) -> int:
        return await teach(
            self.shop.connection,
            self.shop.keyring,
            printed,
            meaning,
            why="their manual",
            actor="tester",
            **more,
        )

    def run(self, printed: PrintedCode, revision: int, **bounds: Any) -> CodeReread:
        async def wake(_channels: frozenset[str]) -> None:
            self.woken += 1

        place = {name: bounds.pop(name) for name in ("position", "page") if name in bounds}
        walk = HistoryWalk(
            connections=SingleConnection(self.shop.connection),
            rereader=Rereader(
                keyring=self.shop.keyring,
                carriers={CARRIER_ID: ACME},
                writer="renormalize-1",
                archive=None,
            ),
            wake=wake,
            carrier_id=CARRIER_ID,
            **bounds,
        )
        code = printed.clear(self.shop.keyring.carrier_digest(CARRIER_ID))
        request = RereadRequest(code=code, revision=revision, actor="tester", why="their manual")
        return CodeReread(walk=walk, request=request, **place)


@pytest.fixture
def operator(shop: Shop) -> Operator:
    return Operator(shop)


async def subscribe(shop: Shop, *statuses: str) -> None:
    await shop.connection.execute(
        "INSERT INTO statesvc.subscription (subscription_id, url, statuses, sealed_secrets,"
        " created_at, created_by, owner) VALUES (gen_random_uuid(), 'https://example.com', %s,"
        " '{}', statesvc.clock(), 'tester', 'tester')",
        (list(statuses) or None,),
    )


async def dead_letters(shop: Shop) -> list[tuple[str | None, str | None, bool]]:
    return await shop.rows(
        "SELECT raw_code, resolution, resolved_at IS NULL FROM statesvc.dead_letter ORDER BY 1"
    )


async def test_a_preview_counts_the_events_and_the_repair_corrects_them(
    shop: Shop, operator: Operator
) -> None:
    await subscribe(shop, "out_for_delivery")
    for number in range(4):
        await shop.say({"number": f"N{number}", "status": "in_transit"})
        await shop.say({"number": f"N{number}", "kind": "unmapped", "code": "NEW", "minute": 5})
    await shop.say(
        {"number": "N0", "status": "delivered", "minute": 9},
        {"number": "N9", "kind": "unmapped", "code": "OTHER"},
    )
    preview = await operator.preview(NEW)
    assert (preview.events, preview.shipments, preview.messages, preview.counts_capped) == (
        4,
        4,
        4,
        False,
    )
    assert [each.tracking_number for each in preview.samples] == ["N3", "N2", "N1", "N0"]
    run = operator.run(NEW, await operator.teach(NEW, ONWARD, replaces=preview.replaces))
    report = await run.run()
    assert (report.corrected, report.transitions, report.notifications, run.is_done) == (
        4,
        3,
        3,
        True,
    )
    assert await shop.value("SELECT count(*) FROM statesvc.outbox") == 3
    assert await dead_letters(shop) == [("NEW", "replayed", False), ("OTHER", None, True)]
    assert operator.woken > 0
    assert await check_log(shop.connection, shop.keyring) > 0
    again = await operator.run(NEW, 1).run()
    assert (again.corrected, again.transitions) == (0, 0)


async def test_a_known_code_is_overridden_and_taken_back_and_its_history_follows(
    shop: Shop, operator: Operator
) -> None:
    known = PrintedCode(carrier_id=CARRIER_ID, raw_type="T", raw_code="X1")
    for number in range(3):
        await shop.say({"number": f"N{number}", "status": "in_transit"})
    preview = await operator.preview(known)
    assert (preview.events, preview.in_effect) == (3, None)
    revision = await operator.teach(known, ONWARD)
    await operator.run(known, revision).run()
    await shop.say({"number": "N5", "status": "in_transit"})
    statuses = "SELECT status, count(*)::int FROM statesvc.shipment GROUP BY 1"
    assert await shop.rows(statuses) == [("out_for_delivery", 4)]
    preview = await operator.preview(known)
    assert (preview.replaces, preview.events) == (revision, 4)
    assert preview.in_effect is not None
    assert preview.in_effect.status is Status.OUT_FOR_DELIVERY
    await operator.run(known, await operator.teach(known, None)).run()
    assert await shop.rows(statuses) == [("in_transit", 4)]


async def test_a_text_without_a_code_is_taught_and_stands_nowhere(
    shop: Shop, operator: Operator
) -> None:
    text = PrintedCode(carrier_id=CARRIER_ID, raw_text="Handed to the neighbour")
    for number, said in enumerate(
        ("HANDED  to the Neighbour", "Given to Ann", "handed to the neighbour")
    ):
        await shop.say(
            {
                "number": f"N{number}",
                "kind": "unmapped",
                "type": None,
                "code": None,
                "description": said,
            }
        )
    await shop.as_owner(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock() WHERE number ="
        " 'N2'"
    )
    assert (await operator.preview(text)).events == 2
    run = operator.run(text, await operator.teach(text, ONWARD))
    assert (await run.run()).corrected == 2, "one by its message, one by its leaf"
    assert (run.obstacle, await dead_letters(shop)) == (
        Obstacle.STILL_UNKNOWN,
        [(None, None, True)],
    )
    given = replace(text, raw_text="Given to Ann")
    run = operator.run(given, await operator.teach(given, Meaning(Kind.INFO)))
    await run.run()
    assert (run.obstacle, await dead_letters(shop)) == (None, [(None, "replayed", False)])
    everything = "SELECT string_agg(t::text, '') FROM statesvc.{table} t"
    for table in ("code_mapping", "mapped_text", "action", "dead_letter"):
        assert "nn" not in str(await shop.value(everything.format(table=table))).lower().replace(
            "channel", ""
        )


async def test_a_reason_narrows_a_code_down(shop: Shop, operator: Operator) -> None:
    await operator.teach(replace(NEW, raw_reason="07"), ONWARD)
    assert (await operator.preview(replace(NEW, raw_reason="08"))).replaces == 0
    (row,) = await current_mappings(shop.connection)
    assert row.raw_reason == "07"


async def test_a_run_goes_on_where_the_last_call_ended(shop: Shop, operator: Operator) -> None:
    await shop.push(
        *(
            says({"number": f"N{number}", "kind": "unmapped", "code": "NEW"}, envelope=number)
            for number in range(30)
        )
    )
    await shop.work()
    revision = await operator.teach(NEW, ONWARD)
    run = operator.run(NEW, revision, messages_max=5, page=8)
    calls = [(await run.run()).corrected]
    while not run.is_done:
        run = operator.run(NEW, revision, messages_max=5, page=8, position=run.position)
        calls.append((await run.run()).corrected)
    assert (sum(calls), len(calls) > 3) == (30, True)
    assert await dead_letters(shop) == [("NEW", "replayed", False)]


async def test_of_two_operators_who_teach_a_code_at_once_one_is_told_of_the_other(
    shop: Shop, operator: Operator
) -> None:
    seen = (await operator.preview(NEW)).replaces

    async def say(meaning: Meaning) -> int | MappingChangedError:
        async with await AsyncConnection.connect(
            shop.database.service_dsn, autocommit=True
        ) as connection:
            try:
                return await teach(
                    connection, shop.keyring, NEW, meaning, why="x", actor="tester", replaces=seen
                )
            except MappingChangedError as error:
                return error

    outcomes = await asyncio.gather(
        *(say(meaning) for meaning in (ONWARD, Meaning(Kind.INFO), Meaning(Kind.SCAN, Status.LOST)))
    )
    assert [each for each in outcomes if isinstance(each, int)] == [1]
    assert [each.revision for each in outcomes if isinstance(each, MappingChangedError)] == [1, 1]
    assert await shop.value("SELECT count(*) FROM statesvc.action WHERE verb = 'map_code'") == 1
