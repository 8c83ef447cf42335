"""Carriers, queue, workers, notices and the record on the console."""

import re

from statesvc.reading.rollout_store import list_rollouts, rollout_of
from tests.world.api import Api
from tests.world.console import ConsoleClient


async def _say_hello(
    api: Api, carrier_id: str, *, minutes_ago: int = 5, accepted: int = 7, duplicates: int = 3
) -> None:
    await api.carriers.execute(
        "INSERT INTO statesvc.ack_count SELECT %s, date_trunc('minute', c) - make_interval(mins =>"
        " %s), 'p', %s, %s, 2, c - make_interval(mins => %s) FROM statesvc.clock() c",
        [carrier_id, minutes_ago, accepted, duplicates, minutes_ago],
    )


async def test_a_carrier_shows_what_it_pushed_and_the_rest_is_folded_away(
    console: ConsoleClient,
) -> None:
    await _say_hello(console.api, "ups")
    await console.log_in("ops")
    text = await console.text("/console/carriers")
    assert "ups" in text.partition("carriers without anything to see")[0]
    assert "30 %" in text
    assert "dhl" not in text.partition("carriers without anything to see")[0]
    one = await console.text("/console/carriers/ups")
    assert "10, 30 % repeated" in one
    assert re.search(r"\b[5-9] min ago", one)
    assert (await console.get("/console/carriers/nobody")).status == 404


async def test_every_carrier_is_held_at_once(console: ConsoleClient) -> None:
    await console.log_in("ops", may_change="on")
    await console.act("/console/carriers/all/hold", why="drill")
    assert "Every carrier is on hold." in await console.text("/console/carriers")
    assert (await rollout_of(console.api.connection, "ups")).held


async def test_another_fleet_takes_part_in_a_rollout_by_the_form(console: ConsoleClient) -> None:
    await console.log_in("ops", may_change="on")
    asked = {"why": "strangle it", "stable": "old@1", "candidate": "1", "percent": "1"}
    would = await console.preview("/console/carriers/ups/rollout", **asked)
    assert "stable old@1 candidate 1 percent 0 1" in would
    done = await console.act("/console/carriers/ups/rollout", **asked)
    assert "ups: 1 % to 1, the rest to old@1; in effect at the next claim" in done
    (rollout,) = await list_rollouts(console.api.connection)
    assert (rollout.stable, rollout.candidate, rollout.percent) == ("old@1", "1", 1)
    assert "old@1" in await console.text("/console/carriers/ups")


async def test_without_a_why_nothing_is_shown_or_done(console: ConsoleClient) -> None:
    await console.log_in("ops", may_change="on")
    for why in ("", "  ", "x" * 1001):
        text = await console.preview("/console/carriers/ups/hold", why=why, step="do")
        assert "Say why" in text
    assert not (await rollout_of(console.api.connection, "ups")).held


async def test_a_session_that_only_reads_changes_nothing(console: ConsoleClient) -> None:
    await console.log_in("ops")
    page = await (await console.get("/console/carriers/ups")).text()
    assert 'href="/console/carriers/ups/hold"' not in page
    assert 'disabled title="This session only reads: allow changes first">Hold</button>' in page
    assert (await console.get("/console/carriers/ups/hold")).status == 403
    token = await console.form_token("/console/carriers")
    refused = await console.post(
        "/console/carriers/ups/hold", form_token=token, why="no", step="do"
    )
    assert refused.status == 403
    assert not (await rollout_of(console.api.connection, "ups")).held


async def test_a_key_without_the_scope_sees_no_such_screen(console: ConsoleClient) -> None:
    await console.log_in("read", may_change="on")
    for path in (
        "/console/carriers",
        "/console/queue",
        "/console/workers",
        "/console/record",
        "/console/notices",
        "/console/keys",
    ):
        assert (await console.get(path)).status == 403, path
        assert path not in await (await console.get("/console")).text(), path


async def test_workers_in_trouble_come_first(console: ConsoleClient) -> None:
    await console.api.carriers.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at,"
        " last_seen_at) SELECT w, 'worker', 'h', 1, v, c - interval '1 day', c - make_interval(secs"
        " => s) FROM statesvc.clock() c, (VALUES ('w-alive', '2', 3), ('w-old', '1', 4), ('w-gone',"
        " '2', 100)) AS t(w, v, s)"
    )
    await console.log_in("ops")
    text = await console.text("/console/workers")
    assert "Several versions run: 1, 2." in text
    assert text.index("w-gone") < text.index("w-alive")
