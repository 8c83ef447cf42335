"""Answers about archived months: the same bytes as before, to each question, also told again."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import duckdb
import orjson
import pytest

from events.merkle.checkpoint import VerifierKey
from statesvc.addons.evidence.check_bundle import check
from statesvc.log.feed import read_transitions
from statesvc.shipments.rebuild.rebuild import Rebuild
from statesvc.subscriptions.replay import ReplayRequest, replay
from tests.addons.mappings.test_history_reread import again, candidate_reads, status
from tests.statesvc.reading.planted import CARRIER, MISREAD
from tests.world.attack import places
from tests.world.log_archiver import OLD, Archiver, shipment
from tests.world.worker_harness import CARRIER_ID, WorkerHarness
from tests.world.worker_harness import shipment as acme

NUMBERS = (*OLD, "1Z0007")


async def _get(api: Any, key: str, path: str, **query: Any) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {key}"}
    async with api.client.get(path, headers=headers, params=query) as response:
        status, body = response.status, await response.read()
    # on busy cores the process that reads archives may start more slowly than an answer may take
    return await _get(api, key, path, **query) if b"timed_out" in body else (status, body)


async def _pages(api: Any, key: str, path: str, **query: Any) -> list[bytes]:
    """Return all pages of a list; a cursor that is no part of the items is one of the page."""
    pages: list[bytes] = []
    cursor: dict[str, str] = {}
    while True:
        status, page = await _get(api, key, path, **query, **cursor)
        assert status == 200, page
        pages.append(page)
        following = orjson.loads(page)["next_cursor"]
        if following is None:
            return pages
        cursor = {"after" if path == "/v1/feed" else "cursor": following}


async def _answers(
    api: Any, key: str, instants: list[datetime], event_ids: list[Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {"feed": await _pages(api, key, "/v1/feed", limit=7)}
    for number in NUMBERS:
        path = f"/v1/shipments/ups/{number}"
        found[path] = await _get(api, key, path)
        for call in ("history", "audit"):
            found[f"{path}/{call}"] = await _pages(
                api, key, f"{path}/{call}", **({"limit": 2} if call == "history" else {})
            )
        for instant in instants:
            for call in ("", "/history", "/audit"):
                found[f"{path}{call} {instant}"] = await _get(
                    api, key, f"{path}{call}", as_of=instant.isoformat()
                )
    found["list"] = await _get(api, key, "/v1/shipments")
    (count,) = (orjson.loads(found["feed"][0])["tree_size"],)
    found["proofs"] = [
        await _get(api, key, "/v1/proofs/inclusion", index=index) for index in range(count)
    ]
    found["proofs by event"] = [
        await _get(api, key, "/v1/proofs/inclusion", carrier_id="ups", event_id=event_id)
        for (event_id,) in event_ids
    ]
    found["consistency"] = await _get(api, key, "/v1/proofs/consistency", **{"from": 5})
    return found


@pytest.mark.usefixtures("two_months")
async def test_no_answer_changes_by_a_byte(archiver: Archiver, api: Any) -> None:
    instants = [
        sealed_at.astimezone(UTC)
        for (sealed_at,) in await archiver.log.rows("SELECT created_at FROM statesvc.checkpoint")
    ]
    instants += [datetime(2020, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)]
    key = await api.key("read audit")
    event_ids = await archiver.log.rows("SELECT event_id FROM statesvc.event_key")
    before = await _answers(api, key, instants, event_ids)
    counts = await archiver.counts()
    await archiver.archived()
    assert (await archiver.counts())["event"] < counts["event"]
    after = await _answers(api, key, instants, event_ids)
    assert after.keys() == before.keys()
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.usefixtures("two_months")
async def test_evidence_of_an_archived_month_verifies_offline(archiver: Archiver, api: Any) -> None:
    path = "/v1/shipments/ups/1Z0001/evidence"
    key = await api.key("audit")
    _, before = await _get(api, key, path)
    await archiver.archived()
    status, after = await _get(api, key, path)
    assert status == 200, after
    bundle = orjson.loads(after)
    assert check(after, [VerifierKey.parse(each) for each in bundle["log"]["keys"]]) == []
    assert bundle["entries"] == orjson.loads(before)["entries"]


async def test_what_was_misread_in_an_archived_month_is_corrected(
    archiver: Archiver, harness: WorkerHarness
) -> None:
    harness.context = replace(harness.context, carriers={CARRIER_ID: CARRIER})
    await candidate_reads(harness, "2")
    await harness.ingest({"number": "A1", "status": "in_transit", "code": MISREAD})
    await archiver.log.seal()
    await archiver.pass_days(70)
    await archiver.archived()
    events = f"SELECT kind FROM statesvc.event WHERE shipment_id = '{acme('A1')}' ORDER BY version"
    assert await archiver.log.rows(events) == []

    assert (await again(harness, archive=archiver.folder, dry_run=True)).corrected == 1
    report = await again(harness, archive=archiver.folder)
    assert (report.corrected, report.transitions) == (1, 1)
    assert await archiver.log.rows(events) == [("scan",), ("correction",)]
    assert await status(harness, "A1") == "in_transit"
    assert (await again(harness, archive=archiver.folder)).corrected == 0
    await archiver.log.seal()
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_subscriber_may_be_told_again_of_an_archived_month(archiver: Archiver) -> None:
    transitions = (
        "SELECT sequence, recorded_at FROM statesvc.transition WHERE shipment_id ="
        f" '{shipment('1Z0001')}' ORDER BY sequence"
    )
    before = await archiver.log.rows(transitions)
    subscription_id = uuid4()
    await archiver.as_owner(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        f" sealed_secrets, shipments) VALUES ('{subscription_id}', statesvc.clock(), 'tester',"
        " 'bootstrap', 'https://x.example/', '{}', '{ups/1Z0001}')"
    )
    await archiver.archived()
    assert await archiver.log.rows(transitions) == []

    order = ReplayRequest(
        subscription_id=subscription_id,
        since=before[0][1],
        until=before[-1][1].replace(year=before[-1][1].year + 1),
        open_end=True,
        delivered_too=False,
        dry_run=False,
        actor="tester",
        run_id=uuid4(),
    )
    planned = await replay(
        archiver.connection, replace(order, dry_run=True), archive=archiver.archive
    )
    done = await replay(archiver.connection, order, archive=archiver.archive)
    assert (planned.put, done.put, done.never_written) == (len(before),) * 3
    output = (
        f"SELECT sequence FROM statesvc.notification WHERE subscription_id = '{subscription_id}'"
        " ORDER BY sequence"
    )
    assert await archiver.log.rows(output) == [(sequence,) for sequence, _ in before]
    entries = (
        f"SELECT sequence, replayed FROM statesvc.fanout WHERE '{subscription_id}' = ANY"
        " (subscriptions) ORDER BY sequence"
    )
    assert await archiver.log.rows(entries) == [(sequence, False) for sequence, _ in before], (
        "for the first time"
    )


PAGE: Final = Path(__file__).parents[4] / "docs" / "archive-queries.md"
VIEWS, *QUESTIONS = re.findall(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.mark.usefixtures("two_months")
async def test_duckdb_answers_each_question_of_the_page(archiver: Archiver) -> None:
    month = await archiver.archived()
    with duckdb.connect() as connection:
        connection.execute(VIEWS.replace("/var/lib/statesvc/archive", str(archiver.folder)))
        for question in QUESTIONS:
            rows = connection.execute(question).fetchall()
            assert rows or "unmapped" in question or "picked_up IS NOT NULL" in question, question
        events = connection.execute("SELECT count(*) FROM events").fetchall()
        entries = connection.execute("SELECT count(*) FROM entries").fetchall()
    assert events == [(month.events,)]
    assert entries == [(month.entries,)]


@pytest.mark.usefixtures("two_months")
async def test_the_stream_resumes_from_an_archived_index(archiver: Archiver) -> None:
    head = await archiver.log.seal()

    async def output(step: int) -> list[Any]:
        archive, size = archiver.archive, head.tree_size
        return [
            transition
            for begin in range(0, size, step)
            for transition in await read_transitions(
                archiver.connection, begin=begin, end=min(begin + step, size), archive=archive
            )
        ]

    before = await output(1000)
    await archiver.archived()
    assert await output(1000) == before
    assert await output(3) == before


@pytest.mark.usefixtures("two_months")
async def test_a_rebuild_folds_archive_and_tables(archiver: Archiver) -> None:
    task = Rebuild(
        owner_dsn=archiver.database.owner_dsn,
        actor="test",
        processes=2,
        progress=lambda *_: None,
        archive=archiver.archive,
    )
    events, drift = await task.compare()
    assert drift == []
    await archiver.archived()
    assert await task.compare() == (events, [])
    assert await task.rebuild() == events
    assert await task.compare() == (events, [])
    rows = await archiver.log.rows("SELECT shipment_id FROM statesvc.shipment")
    assert {shipment(number) for number in OLD} <= {shipment_id for (shipment_id,) in rows}


@pytest.mark.usefixtures("two_months")
async def test_a_period_brings_back_all_that_was_said_of_in_it(archiver: Archiver) -> None:
    month = await archiver.archived()
    await archiver.archive.restore_period(
        archiver.connection, month.begins, datetime(2040, 1, 1, tzinfo=UTC)
    )
    for number in OLD:
        count = await archiver.log.rows(
            f"SELECT count(*) FROM statesvc.event WHERE shipment_id = '{shipment(number)}'"
        )
        assert count[0][0] >= 5, number
