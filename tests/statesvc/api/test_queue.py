from typing import Any

import pytest

from statesvc.api.call_limits import CallLimits
from statesvc.api.status_operations import shown_finding
from statesvc.database.pool import Pool
from statesvc.health.finding import Finding, Urgency
from statesvc.queue.depths import DepthGauges
from statesvc.telemetry.metrics import Telemetry

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
    age = shown["carriers"]["ups"].pop("oldest_ready_seconds")
    assert 300 <= age < 330
    assert shown["carriers"]["ups"] == {
        "ready": 4,
        "leased": 4,
        "scheduled": 2,
        "held": 0,
        "oldest_held_seconds": None,
    }
    held_for = shown["carriers"]["fedex"].pop("oldest_held_seconds")
    assert 60 <= held_for < 400
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
