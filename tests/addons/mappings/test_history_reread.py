"""History read again: corrections that point to the old, an effect like the right reading's, and
nothing a second time.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from events.carriers.carrier import Carrier
from events.parsing.meanings import UNMAPPED, Meaning
from events.vocabulary import Kind, Status
from statesvc.addons.mappings.history_reread import HistoryPosition, HistoryRequest, HistoryReread
from statesvc.addons.mappings.mapped_code import MappedCode
from statesvc.addons.mappings.mapping_store import add_mapping
from statesvc.files.archive_folder import ArchivePath
from statesvc.http.paging import encode_position, position_of
from statesvc.reading.code_mapping import Mappings
from statesvc.reading.rollout_store import RolloutSettings, set_rollout
from statesvc.repair.renormalize.correction_plan import RenormalizeReport, plan_unread
from statesvc.repair.renormalize.effective_readings import effective_readings
from statesvc.repair.renormalize.history_walk import HistoryWalk, Rereader
from statesvc.subscriptions.subscription_store import SubscriptionRequest, create
from tests.statesvc.reading.planted import CARRIER, MISREAD
from tests.statesvc.worker.log_check import check_log
from tests.world.database import SingleConnection
from tests.world.worker_harness import CARRIER_ID, WorkerHarness, push_body, shipment

pytestmark = pytest.mark.slow


async def nobody_wakes(_channels: frozenset[str]) -> None: ...


def history(
    harness: WorkerHarness,
    carrier: Carrier = CARRIER,
    *,
    archive: ArchivePath | None = None,
    **scope: Any,
) -> HistoryReread:
    bounds = {
        name: scope.pop(name)
        for name in ("messages_max", "per_second", "dry_run", "notify")
        if name in scope
    }
    place = {name: scope.pop(name) for name in ("position", "page") if name in scope}
    walk = HistoryWalk(
        connections=SingleConnection(harness.connection),
        rereader=Rereader(
            keyring=harness.keyring,
            carriers={CARRIER_ID: carrier},
            writer="renormalize-1",
            archive=archive,
        ),
        wake=nobody_wakes,
        carrier_id=CARRIER_ID,
        **bounds,
    )
    return HistoryReread(walk=walk, request=HistoryRequest(actor="tester", **scope), **place)


async def again(
    harness: WorkerHarness, carrier: Carrier = CARRIER, **scope: Any
) -> RenormalizeReport:
    """Read to the end."""
    return await history(harness, carrier, **scope).run()


async def candidate_reads(harness: WorkerHarness, version: str, percent: int = 100) -> None:
    await set_rollout(
        harness.connection,
        CARRIER_ID,
        RolloutSettings(candidate=version, percent=percent),
        why="test",
        actor="tester",
    )


async def status(harness: WorkerHarness, number: str) -> str:
    found: str = await harness.value(
        "SELECT status FROM statesvc.shipment WHERE shipment_id = %s", shipment(number)
    )
    return found


async def log_length(harness: WorkerHarness) -> int:
    length: int = await harness.value("SELECT count(*) FROM statesvc.event")
    return length


async def test_a_misread_event_is_corrected_by_an_event_that_points_to_it(
    harness: WorkerHarness,
) -> None:
    await candidate_reads(harness, "2")
    await harness.ingest({"number": "A1", "status": "picked_up"})
    await harness.ingest({"number": "A1", "status": "in_transit", "code": MISREAD, "minute": 5})
    assert await status(harness, "A1") == "delivered"
    planned = await again(harness, read_by="2", dry_run=True)
    assert (planned.corrected, await log_length(harness), await status(harness, "A1")) == (
        1,
        2,
        "delivered",
    )
    report = await again(harness, read_by="2")
    assert (report.messages, report.corrected, report.unchanged, report.transitions) == (2, 1, 1, 1)
    assert await status(harness, "A1") == "in_transit"
    _, wrong, correction = await harness.events("A1")
    assert (correction["kind"], correction["corrects"], correction["status"]) == (
        "correction",
        wrong["event_id"],
        "in_transit",
    )
    assert correction["event_id"].startswith("c1-")
    assert (wrong["normalizer_version"], correction["normalizer_version"]) == ("2", "1")
    assert correction["message_id"] == wrong["message_id"]
    assert await check_log(harness.connection, harness.keyring) > 0


async def test_corrections_may_notify_nobody_and_the_action_says_so(harness: WorkerHarness) -> None:
    request = SubscriptionRequest(url="https://subscriber.invalid/")
    await create(harness.connection, harness.keyring, request, actor="test", owner="bootstrap")
    await candidate_reads(harness, "2")
    await harness.ingest({"number": "A1", "status": "in_transit", "code": MISREAD})
    report = await again(harness, notify=False)
    assert (report.corrected, report.transitions, report.notifications) == (1, 1, 0)
    (_, correction) = await harness.events("A1")
    assert correction["notify"] is False
    action = (
        "SELECT convert_from(canonical, 'UTF8')::jsonb -> 'details' -> 'notify' FROM"
        " statesvc.action WHERE verb = 'renormalize'"
    )
    assert await harness.value(action) is False


async def test_a_second_run_appends_nothing_and_a_chain_names_what_it_replaces(
    harness: WorkerHarness,
) -> None:
    await harness.ingest({"number": "A1", "status": "in_transit", "code": MISREAD})
    wrong = replace(CARRIER, stable="2")
    for carrier, now in ((wrong, "delivered"), (CARRIER, "in_transit"), (wrong, "delivered")):
        assert (await again(harness, carrier)).corrected == 1
        assert await status(harness, "A1") == now
        assert (await again(harness, carrier)).corrected == 0
    root, first, second, third = await harness.events("A1")
    assert {event["corrects"] for event in (first, second, third)} == {root["event_id"]}
    assert [event.get("anchor") for event in (first, second, third)] == [
        None,
        first["event_id"],
        second["event_id"],
    ]


async def test_what_the_candidate_left_out_is_added_and_what_it_alone_said_is_taken_back(
    harness: WorkerHarness,
) -> None:
    await candidate_reads(harness, "forgetful")
    await harness.push(
        push_body(
            {"number": "A1", "status": "delivered", "minute": 9},
            {"number": "A1", "status": "picked_up"},
        )
    )
    await harness.push(push_body({"number": "A2", "status": "picked_up"}))
    await harness.work()
    assert await status(harness, "A1") == "picked_up"
    report = await again(harness, read_by="forgetful")
    assert (report.added, report.corrected, report.retracted) == (2, 0, 0)
    assert (await status(harness, "A1"), await status(harness, "A2")) == ("delivered", "picked_up")
    names = (
        "SELECT count(*) FROM statesvc.message WHERE shipments = ARRAY[%s::uuid] AND sealed_key IS"
        " NOT NULL"
    )
    assert await harness.value(names, shipment("A2")) == 1, (
        "erasing the shipment must make the body unreadable"
    )
    carrier = replace(CARRIER, stable="forgetful")
    assert (await again(harness, carrier)).retracted == 2
    assert await status(harness, "A1") == "picked_up"
    assert (await again(harness, carrier)).retracted == 0


async def test_only_what_came_since_and_only_what_the_version_read(harness: WorkerHarness) -> None:
    await harness.ingest({"number": "A1", "status": "in_transit"})
    await harness.database.clock.advance(3600)
    await candidate_reads(harness, "same")
    await harness.ingest({"number": "A2", "status": "in_transit"})
    now = await harness.database.clock.now()
    assert (await again(harness, since=now - timedelta(minutes=30))).messages == 1
    assert (await again(harness, read_by="1")).messages == 1
    assert (await again(harness, read_by="same")).messages == 1
    assert (await again(harness)).messages == 2


async def test_without_its_message_an_event_is_read_by_its_raw_fields_or_reported(
    harness: WorkerHarness,
) -> None:
    await harness.ingest({"number": "A1", "kind": "unmapped", "code": "NEW"})
    await harness.ingest({"number": "A2", "kind": "unmapped", "code": "OLD"})
    await harness.as_owner("UPDATE statesvc.message SET sealed_key = NULL")
    await add_mapping(
        harness.connection,
        MappedCode(CARRIER_ID, "T", "NEW"),
        Meaning(Kind.SCAN, Status.LOST),
        why="",
        actor="tester",
    )
    report = await again(harness)
    assert (report.corrected, report.unreadable, report.codes_left) == (1, 1, {("T", "OLD")})
    assert (await status(harness, "A1"), await status(harness, "A2")) == ("lost", "unknown")
    assert (await again(harness)).corrected == 0


async def test_without_its_message_and_a_mapping_the_carriers_own_code_reads_the_raw_fields(
    harness: WorkerHarness,
) -> None:
    known = {
        "NEW": Meaning(Kind.SCAN, Status.LOST),
        MISREAD: Meaning(Kind.SCAN, Status.IN_TRANSIT),
        "STILL": UNMAPPED,
    }
    await candidate_reads(harness, "2")
    await harness.ingest({"number": "A1", "kind": "unmapped", "code": "NEW"})
    await harness.ingest(
        {
            "number": "A2",
            "status": "in_transit",
            "code": MISREAD,
            "estimated_delivery": "2026-03-02",
        }
    )
    await harness.ingest({"number": "A3", "kind": "unmapped", "code": "STILL"})
    await harness.ingest({"number": "A4", "status": "in_transit", "code": "BY TEXT"})
    await harness.as_owner("UPDATE statesvc.message SET sealed_key = NULL")
    carrier = replace(CARRIER, reread=lambda raw: known.get(raw.code or ""))
    report = await again(harness, carrier)
    assert (report.corrected, report.unchanged, report.unreadable) == (2, 1, 1)
    assert (report.codes, report.codes_left) == ({("T", "NEW")}, {("T", "STILL")})
    assert [await status(harness, number) for number in ("A1", "A2", "A3", "A4")] == [
        "lost",
        "in_transit",
        "unknown",
        "in_transit",
    ]
    assert (
        await harness.value(
            "SELECT estimated_delivery FROM statesvc.shipment WHERE shipment_id = %s",
            shipment("A2"),
        )
        is not None
    )
    assert (await again(harness, carrier)).corrected == 0


async def test_what_another_normalizer_read_is_not_read_by_the_raw_fields(
    harness: WorkerHarness,
) -> None:
    await harness.ingest({"number": "A1", "kind": "unmapped", "code": "NEW"})
    (event,) = await harness.events("A1")
    lost = Meaning(Kind.SCAN, Status.LOST)
    carrier = replace(CARRIER, reread=lambda _raw: lost)
    for document, expected in (
        (event, (1, 0, 0)),
        (event | {"normalizer": "acme-node"}, (0, 1, 0)),
        (event | {"kind": "promise"}, (0, 0, 1)),
    ):
        report = RenormalizeReport()
        plan_unread(effective_readings([document]), carrier, Mappings(), report)
        assert (report.corrected, report.unreadable, report.beyond["vocabulary"]) == expected


async def test_an_erased_shipment_is_reported_not_guessed(harness: WorkerHarness) -> None:
    await candidate_reads(harness, "2")
    await harness.ingest({"number": "A1", "status": "in_transit", "code": MISREAD})
    await harness.as_owner(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock()"
    )
    report = await again(harness, read_by="2")
    assert (report.unreadable, report.corrected) == (1, 0)
    assert await status(harness, "A1") == "delivered"


async def test_a_message_about_several_shipments_opens_with_all_their_keys(
    harness: WorkerHarness,
) -> None:
    await candidate_reads(harness, "2")
    await harness.ingest(
        *(
            {"number": f"A{n}", "status": "in_transit", "code": MISREAD, "signed_by": "Zaphod"}
            for n in range(5)
        )
    )
    assert (await again(harness, read_by="2")).corrected == 5
    assert {await status(harness, f"A{n}") for n in range(5)} == {"in_transit"}
    assert (await again(harness, read_by="2")).corrected == 0


async def test_erased_a_text_in_the_place_of_a_code_is_still_read_by_the_table_that_knows_it(
    harness: WorkerHarness,
) -> None:
    known = Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY)
    await harness.ingest(
        {"number": "A1", "kind": "unmapped", "code": "Out  for Delivery."},
        {"number": "A2", "kind": "unmapped", "code": "Left with Ann"},
    )
    await harness.as_owner(
        "UPDATE statesvc.stream SET sealed_key = NULL, erased_at = statesvc.clock()"
    )
    assert "Delivery" not in str(await harness.events("A1"))
    texts = frozenset({"out for delivery"})
    carrier = replace(
        CARRIER, texts=texts, reread=lambda raw: known if raw.code in texts else UNMAPPED
    )
    report = await again(harness, carrier)
    assert (report.corrected, report.codes, report.codes_left) == (
        1,
        {("T", "text")},
        {("T", "text")},
    )
    assert [await status(harness, number) for number in ("A1", "A2")] == [
        "out_for_delivery",
        "unknown",
    ]


async def in_parts(harness: WorkerHarness, **scope: Any) -> list[HistoryReread]:
    """Read a message a call, each going on from the cursor of the one before."""
    calls = [history(harness, page=1, messages_max=1, **scope)]
    await calls[-1].run()
    while not calls[-1].is_done:
        cursor = encode_position(calls[-1].position, {})
        calls.append(
            history(
                harness,
                page=1,
                messages_max=1,
                position=position_of(cursor, HistoryPosition, {}),
                **scope,
            )
        )
        await calls[-1].run()
    return calls


async def test_a_run_in_parts_ends_as_one_to_the_end_does(harness: WorkerHarness) -> None:
    for number in ("A1", "A2", "A3"):
        await harness.ingest({"number": number, "kind": "unmapped", "code": "NEW"})
    await add_mapping(
        harness.connection,
        MappedCode(CARRIER_ID, "T", "NEW"),
        Meaning(Kind.SCAN, Status.LOST),
        why="",
        actor="tester",
    )
    assert sum(call.report.corrected for call in await in_parts(harness, dry_run=True)) == 3
    assert (
        await harness.value("SELECT count(*) FROM statesvc.action WHERE verb = 'renormalize'") == 0
    )
    calls = await in_parts(harness)
    assert [call.report.corrected for call in calls] == [1, 1, 1, 0]
    assert [call.position.scanned for call in calls] == [1, 2, 3, 3]
    assert [call.remaining > 0 for call in calls] == [True, True, True, False]
    done = (
        "SELECT convert_from(canonical, 'UTF8')::jsonb->'details'->'done' FROM statesvc.action"
        " WHERE verb = 'renormalize' ORDER BY batch_id"
    )
    assert [said for (said,) in await harness.rows(done)] == [False, False, False, True]
