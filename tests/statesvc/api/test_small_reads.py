"""Notices, workers, ids of messages, and the queue."""

import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from statesvc.api.call_limits import CallLimits
from statesvc.api.status_operations import shown_finding
from statesvc.bodies.sealed_message import message_id
from statesvc.database.pool import Pool
from statesvc.health.finding import Finding, Urgency
from statesvc.health.notices import Notice, NoticeKind, write_notices
from statesvc.queue.depths import DepthGauges
from statesvc.telemetry.metrics import Telemetry

PATH = "/v1/notices"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


async def test_they_are_paged_newest_first_and_unseen_ones_filtered(api: Any) -> None:
    for place in range(5):
        notice = Notice(
            kind=NoticeKind.FAILING, target=f"subscription {place}", details={"failures": place}
        )
        await write_notices(api.connection, [notice], now=NOW)
    pages = await api.pages(PATH, scopes="ops", limit="3")
    assert [[one["target"][-1] for one in page] for page in pages] == [["4", "3", "2"], ["1", "0"]]
    newest = pages[0][0]
    assert (newest["kind"], newest["details"], newest["seen_at"]) == (
        NoticeKind.FAILING,
        {"failures": 4},
        None,
    )
    seen = await api.call("POST", f"{PATH}/{newest['notice_id']}/seen", scopes="ops")
    assert (seen.status, seen.body["seen_by"][:4]) == (200, "key:")
    again = await api.call("POST", f"{PATH}/{newest['notice_id']}/seen", scopes="admin")
    assert again.body == seen.body, "who saw it first stays"
    unseen = (await api.get(PATH, scopes="ops", params={"unseen": "true"})).body["items"]
    assert [one["target"][-1] for one in unseen] == ["3", "2", "1", "0"]
    assert await api.rows(
        "SELECT actor, target FROM statesvc.action WHERE verb = 'notice.seen'"
    ) == [(seen.body["seen_by"], f"notice {newest['notice_id']}")]


async def test_strange_ones_are_refused(api: Any) -> None:
    assert (await api.call("POST", f"{PATH}/999/seen", scopes="ops")).body["code"] == "not_found"
    assert (await api.call("POST", f"{PATH}/0/seen", scopes="ops")).status == 422
    assert (await api.get(PATH, scopes="ops", params={"cursor": "nonsense"})).body[
        "code"
    ] == "invalid_cursor"
    assert (await api.get(PATH, scopes="read subscriptions")).status == 403


WORKER = (
    "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at, last_seen_at,"
    " stopping_at) SELECT %s, 'worker', 'h', 7, '0', at - interval '1 hour', at -"
    " make_interval(secs => %s), %s FROM (SELECT statesvc.clock() AS at) c"
)
LEASED = (
    "INSERT INTO statesvc.inbox (message_id, received_at, available_at, token, worker, leased_at,"
    " body_bytes, carrier_id, sealed_key) SELECT gen_random_uuid(), at, at, gen_random_uuid(), %s,"
    " at - interval '3 s', 1, 'ups', '' FROM (SELECT statesvc.clock() AS at) c,"
    " generate_series(1, %s)"
)


async def test_workers_show_their_state_their_leases_and_what_was_taken_from_them(api: Any) -> None:
    for worker_id, seen_seconds_ago, stopping_at in (
        ("alive", 2, None),
        ("silent", 50, None),
        ("stopping", 1, "2026-01-01T00:00:00Z"),
    ):
        await api.carriers.execute(WORKER, [worker_id, seen_seconds_ago, stopping_at])
    for holder, count in (("alive", 3), ("node", 2), (None, 4)):
        await api.carriers.execute(LEASED, [holder, count])
    await api.carriers.execute(
        "INSERT INTO statesvc.message_attempt (message_id, ended_at, attempt, carrier_id, outcome,"
        " worker) SELECT gen_random_uuid(), statesvc.clock() - h * interval '1 h', 1, 'ups', o,"
        " 'silent' FROM (VALUES (0, 'lease_ended'), (5, 'lease_ended'), (30, 'lease_ended'), (0,"
        " 'retried')) v(h, o)"
    )
    shown = (await api.get("/v1/workers", scopes="ops")).body
    rows = [
        (w["worker_id"], w["state"], w["leases"], w["leases_lost"], w["role"])
        for w in shown["items"]
    ]
    assert rows == [
        ("silent", "silent", 0, 2, "worker"),
        ("stopping", "stopping", 0, 0, "worker"),
        ("node", "foreign", 2, 0, None),
        ("alive", "alive", 3, 0, "worker"),
    ]
    assert 50 <= shown["items"][0]["seen_seconds_ago"] < 60
    assert shown["rescues_last_hour"] == 1


SPOOL = (
    "INSERT INTO statesvc.spool (name, seen_at, held_seconds, clear_until)"
    " VALUES ('file:a', statesvc.clock(), 60, statesvc.clock() - %s * interval '1 s')"
)


def received(seconds_ago: float) -> str:
    return str(message_id(int((time.time() - seconds_ago) * 1000), bytes(10)))


async def problem(api: Any, name: str) -> str:
    reply = await api.get(f"/v1/messages/{name}", scopes="audit")
    assert reply.status == 404
    return str(reply.body["detail"])


async def test_an_id_that_a_spool_may_hold_is_said_to_wait_there(api: Any) -> None:
    assert await problem(api, received(100)) == "no message has this id", "there is no spool"
    await api.carriers.execute(SPOOL, [300])
    assert "waits in a spool" in await problem(api, received(100))
    assert await problem(api, received(1000)) == "no message has this id", "it would be drained"
    assert await problem(api, str(uuid4())) == "no message has this id", "its time is chance"


QUEUED = (
    "INSERT INTO statesvc.inbox (message_id, received_at, available_at, token, worker, body_bytes,"
    " carrier_id, sealed_key) SELECT gen_random_uuid(), statesvc.clock(), statesvc.clock() +"
    " %s::interval, %s, %s, 10, %s, '' FROM generate_series(1, %s)"
)
TOKEN = "0190b1de-0000-7000-8000-00000000000a"


async def queue(api: Any) -> Any:
    reply = await api.get("/v1/queue", scopes="ops")
    assert reply.status == 200, reply.body
    return reply.body


async def test_counts_by_carrier_and_state(api: Any) -> None:
    await api.carriers.execute(
        "INSERT INTO statesvc.lane (carrier_id) VALUES ('ups'), ('fedex'), ('dhl_express')"
    )
    for wait, token, worker, carrier_id, count in (
        ("-5 minutes", None, None, "ups", 3),
        ("-1 minute", None, None, "ups", 1),
        ("1 hour", None, None, "ups", 2),
        ("30 seconds", TOKEN, "w", "ups", 4),
        ("-1 minute", None, None, "fedex", 5),
        ("-2 minutes", TOKEN, None, "dhl_express", 6),
        ("2 minutes", TOKEN, None, "dhl_express", 7),
    ):
        await api.carriers.execute(QUEUED, [wait, token, worker, carrier_id, count])
    await api.carriers.execute(
        "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES ('fedex',"
        " true, statesvc.clock(), 'me')"
    )
    await api.carriers.execute(
        "INSERT INTO statesvc.outbox (subscription_id, shipment_id, sequence, available_at,"
        " created_at) SELECT gen_random_uuid(), gen_random_uuid(), 1, statesvc.clock() + w,"
        " statesvc.clock() FROM unnest(ARRAY['-1 s', '1 h', '2 h']::interval[]) w"
    )
    await api.carriers.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at, resolved_at,"
        " resolution) VALUES ('message', 'unreadable', 'ups', statesvc.clock(), NULL, NULL),"
        " ('message', 'unreadable', 'ups', statesvc.clock(), statesvc.clock(), 'discarded')"
    )
    shown = await queue(api)
    assert 300 <= shown["carriers"]["ups"].pop("oldest_ready_seconds") < 330
    assert shown["carriers"]["ups"] == {
        "ready": 4,
        "leased": 4,
        "scheduled": 2,
        "held": 0,
        "oldest_held_seconds": None,
    }
    assert 60 <= shown["carriers"]["fedex"].pop("oldest_held_seconds") < 400
    assert shown["carriers"]["fedex"] == {
        "ready": 0,
        "leased": 0,
        "scheduled": 0,
        "held": 5,
        "oldest_ready_seconds": None,
    }
    parked = shown["carriers"]["dhl_express"]
    assert 120 <= parked.pop("oldest_ready_seconds") < 150
    assert parked == {
        "ready": 6,
        "leased": 0,
        "scheduled": 7,
        "held": 0,
        "oldest_held_seconds": None,
    }
    assert shown["outbox"] == {"ready": 1, "leased": 0, "scheduled": 2}
    assert shown["dead_letters"] == 1


async def test_a_scrape_shows_the_depths(api: Any, pool: Pool) -> None:
    await api.carriers.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups')")
    for wait, token, count in (
        ("-5 minutes", None, 3),
        ("1 hour", None, 2),
        ("30 seconds", TOKEN, 4),
    ):
        await api.carriers.execute(QUEUED, [wait, token, token and "w", "ups", count])
    telemetry, depths = Telemetry(), DepthGauges(pool)
    depths.report_to(telemetry)
    await depths.sample()
    shown = telemetry.exposition().decode().splitlines()
    of_ups = {"ready": 3, "leased": 4, "scheduled": 2, "held": 0}
    assert {
        f'statesvc_inbox_depth{{carrier="ups",state="{state}"}} {count:.1f}'
        for state, count in of_ups.items()
    } | {'statesvc_outbox_depth{state="ready"} 0.0'} <= set(shown)
    (oldest,) = [line for line in shown if line.startswith("statesvc_inbox_oldest_ready_seconds{")]
    assert 300 <= float(oldest.split()[1]) < 330


@pytest.mark.parametrize("call_limits", [CallLimits(counted=5)])
async def test_a_count_beyond_the_bound_says_that_it_is_capped(api: Any) -> None:
    await api.carriers.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups')")
    await api.carriers.execute(QUEUED, ["-1 minute", None, None, "ups", 9])
    shown = await queue(api)
    assert (shown["carriers"]["ups"]["ready"], shown["counts_capped"]) == (5, True)


def test_a_trouble_leads_to_its_page_in_the_console_where_its_address_is_known() -> None:
    trouble = Finding(urgency=Urgency.NOW, about="processes", text="no worker", page="RoleDown")
    assert shown_finding(trouble)["runbook_url"] is None
    shown = shown_finding(trouble, console_url="https://statesvc.example.com/")
    assert shown["runbook_url"] == "https://statesvc.example.com/console/runbook/RoleDown"
    assert shown["page"] == "docs/runbook/RoleDown.md"
