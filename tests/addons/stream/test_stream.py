"""The stream over HTTP: each transition once, in the log's order, whatever the
client or the writers do.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from psycopg import AsyncConnection
from pydantic import TypeAdapter

from events.vocabulary import Status
from statesvc.addons.stream.admission import CHECKS, CLOSED_SECONDS, LATE_SECONDS, LoadShedder
from statesvc.addons.stream.frame_pages import Pages
from statesvc.addons.stream.streams import StreamLimits
from statesvc.api.transition_operations import StreamedTransition
from statesvc.database.queries import queries
from statesvc.http.keys.key_store import Scope, create_key
from statesvc.log.feed import recorded_span
from statesvc.log.history import History
from statesvc.subscriptions.key_revocation import revoke_key
from tests.addons.stream.conftest import STREAM_LIMITS, Stage
from tests.world.database import without_triggers
from tests.world.log_builder import LogBuilder, scan

KILL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND"
    " application_name = ANY (%s)"
)


async def until_let_in(stage: Stage) -> None:
    """Try for two seconds at most: sooner than any ping."""
    async with asyncio.timeout(2):
        while True:
            answer = await stage.client.get("/v1/stream", headers=stage.headers())
            answer.close()
            if answer.status == 200:
                return
            await asyncio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("transitions", "page"), [(10_000, 97), (2_000, 2_000)])
async def test_a_client_dropped_at_random_resumes_to_exactly_the_full_sequence(
    staged: Callable[..., Any], transitions: int, page: int
) -> None:
    # narrow: it is behind again and again, and pages end within batches
    async with staged(limits=replace(STREAM_LIMITS, page_entries=page)) as stage:
        chance = random.Random(7)
        drops = sorted(chance.sample(range(transitions), 50))
        seen: list[Any] = []

        async def write() -> None:
            numbers = [f"1Z{place:06d}" for place in range(transitions // 5)]
            while numbers:
                some = chance.randint(1, 60)
                await stage.move(numbers[:some])
                del numbers[:some]
                if chance.random() < 0.7:
                    await stage.publish()
            await stage.publish()

        writing = asyncio.create_task(write())
        last: dict[str, str] = {}
        for drop in [*drops, transitions]:
            async with stage.source("/v1/stream?after=-1", **last) as source:
                while len(seen) < drop:
                    seen += await source.next()
            last = {"Last_Event_ID": seen[-1].id} if seen else {}
        await writing
        truth = await stage.truth()
        assert len(truth) == transitions
        assert [block.data for block in seen] == truth
        assert [block.id for block in seen] == [f"1.{each['log_index']}" for each in truth]
        assert {block.name for block in seen} == {"shipment.status_changed"}


async def test_a_transition_that_commits_late_is_seen_once_by_those_who_were_there_before(
    stage: Stage, database: Any
) -> None:
    async with stage.source() as live, await AsyncConnection.connect(database.service_dsn) as held:
        await held.execute("SET timezone = 'UTC'")
        await LogBuilder(held, stage.log.keyring).append(
            scan("1ZHELD", 1, Status.IN_TRANSIT), commit=False
        )
        await stage.log.append(scan("1ZFIRST", 1, Status.IN_TRANSIT))
        await stage.publish()
        seen = await live.next()
        async with stage.source("/v1/stream?after=-1") as late:
            assert await late.next() == seen
            await held.commit()
            await stage.publish()
            seen += await live.next()
            assert await late.next() == seen[1:]
        assert [block.data["tracking_number"] for block in seen] == ["1ZFIRST", "1ZHELD"]
        # by the time of recording, or by the batch's id, the second stands before the first: who
        # follows either would miss it
        assert seen[1].data["recorded_at"] < seen[0].data["recorded_at"]
        await stage.log.append(scan("1ZLAST", 1, Status.IN_TRANSIT))
        await stage.publish()
        assert [block.data for block in await live.next()] == (await stage.truth())[2:]


async def test_the_data_keeps_its_contract_and_says_where_the_log_has_it(stage: Stage) -> None:
    async with stage.source() as source:
        await stage.log.conflict("1ZOTHER")
        await stage.log.append(
            scan("1z 1", 1, Status.DELIVERED), scan("1z 1", 0, Status.IN_TRANSIT)
        )
        await stage.publish()
        (block,) = await source.next()
    TypeAdapter(StreamedTransition).validate_python(block.data)
    assert block.data.keys() == StreamedTransition.__annotations__.keys()
    assert {
        name: block.data[name]
        for name in ("carrier_id", "tracking_number", "from", "to", "occurred_at", "sequence")
    } == {
        "carrier_id": "ups",
        "tracking_number": "1z 1",
        "from": "unknown",
        "to": "delivered",
        "occurred_at": "2026-03-01T08:01:00+00:00",
        "sequence": 2,
    }
    assert block.id == f"1.{block.data['log_index']}"


async def test_nothing_is_told_before_its_checkpoint_and_old_news_only_to_those_who_ask(
    stage: Stage,
) -> None:
    await stage.publish_moves("1ZOLD")
    async with stage.source() as live, stage.source("/v1/stream?after=-1") as whole:
        assert len(await whole.next(5)) == 5
        await stage.move(["1ZNEW"])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(live.next(), 0.2)
    async with stage.source() as live:
        await stage.publish()
        assert [block.data["tracking_number"] for block in await live.next(5)] == ["1ZNEW"] * 5


async def test_a_client_cut_off_before_the_first_transition_goes_on_from_where_it_began(
    stage: Stage,
) -> None:
    await stage.publish_moves("1ZOLD")
    async with stage.source() as live:
        began_at = live.began_at or ""
    await stage.publish_moves("1ZNEW")
    async with stage.source(Last_Event_ID=began_at) as live:
        assert [block.data["tracking_number"] for block in await live.next(5)] == ["1ZNEW"] * 5


async def test_a_client_gets_only_what_it_asks_for(stage: Stage) -> None:
    query = "carrier_id=ups&carrier_id=dhl_unified&status=delivered&status=picked_up"
    async with stage.source(f"/v1/stream?{query}") as live:
        for carrier_id in ("ups", "fedex", "dhl_unified"):
            await stage.move([f"{carrier_id}1", f"{carrier_id}2"], carrier_id=carrier_id)
        await stage.publish()
        told = await live.next(8)
        async with stage.source(f"/v1/stream?after=-1&{query}") as late:
            assert await late.next(8) == told
        wanted = [
            e
            for e in await stage.truth()
            if e["carrier_id"] != "fedex" and e["to"] in {"delivered", "picked_up"}
        ]
        assert [block.data for block in told] == wanted


async def test_an_index_of_another_log_is_reset_to_now_and_a_ping_has_no_id(
    staged: Callable[..., Any],
) -> None:
    async with staged(
        limits=StreamLimits(clients_max=9, clients_per_key_max=9, send_seconds=5, ping_seconds=0.05)
    ) as stage:
        await stage.publish_moves("1Z1")
        size = (await stage.log.opened()).size
        async with stage.source(Last_Event_ID=f"1.{size}") as source:
            blocks = [await anext(aiter(source)) for _ in range(3)]
            assert (blocks[0].name, blocks[0].data) == (
                "reset",
                {"after": f"1.{size}", "tree_size": size},
            )
            assert [block.comment for block in blocks[1:]] == ["ping", "ping"]
            assert [block.id for block in blocks] == [f"1.{size - 1}", None, None]
            await stage.publish_moves("1Z2")
            assert (await source.next())[0].data["tracking_number"] == "1Z2"
        async with stage.source(Last_Event_ID=f"1.{size - 1}") as source:
            assert (await source.next())[0].data["tracking_number"] == "1Z2"


async def test_the_header_goes_before_the_query_as_a_browser_comes_back(stage: Stage) -> None:
    await stage.publish_moves("1Z1")
    truth = await stage.truth()
    async with stage.source(
        "/v1/stream?after=-1", Last_Event_ID=f"1.{truth[2]['log_index']}"
    ) as source:
        assert [block.data for block in await source.next(2)] == truth[3:]


async def test_a_request_that_breaks_the_contract_is_refused(stage: Stage) -> None:
    for path, headers, status, code in (
        ("/v1/stream?after=x", {}, 422, "invalid_request"),
        ("/v1/stream?after=-2", {}, 422, "invalid_request"),
        ("/v1/stream?status=nonsense", {}, 422, "invalid_request"),
        ("/v1/stream?carrier_id=usp", {}, 422, "invalid_request"),
        ("/v1/stream", {"Last_Event_ID": "x"}, 422, "invalid_request"),
        ("/v1/stream", {"Authorization": "Bearer no"}, 401, "unauthenticated"),
    ):
        answer = await stage.client.get(path, headers=stage.headers(**headers))
        assert (answer.status, (await answer.json())["code"]) == (status, code), path


async def test_proxies_and_browsers_are_told_to_pass_everything_on(stage: Stage) -> None:
    async with stage.source(Accept_Encoding="gzip, deflate") as source:
        headers = source.answer.headers
        assert headers["Content-Type"] == "text/event-stream"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Accel-Buffering"] == "no"
        assert "Content-Encoding" not in headers
    answer = await stage.client.head("/v1/stream", headers=stage.headers())
    assert (answer.status, await answer.read()) == (200, b"")


async def test_a_page_is_read_once_for_all(staged: Callable[..., Any]) -> None:
    taken = 0

    class Counting:
        def __init__(self, pool: Any) -> None:
            self._pool = pool

        def connection(self) -> Any:
            nonlocal taken
            taken += 1
            return self._pool.connection()

    async with staged(pool=Counting) as stage:
        sources = [stage.source() for _ in range(30)]
        opened = [await source.__aenter__() for source in sources]
        taken = 0
        for place in range(5):
            await stage.publish_moves(f"1Z{place}")
            told = [await source.next(5) for source in opened]
            assert all(each == told[0] for each in told)
        # each publication: what is new, and a look that finds nothing more
        assert taken <= 5 * 3
        for source in sources:
            await source.__aexit__(None, None, None)


async def test_clients_that_come_back_at_many_places_share_two_connections(
    stage: Stage,
) -> None:
    await stage.publish_moves(*(f"1Z{place}" for place in range(9)))
    held = most = 0

    class Counting:
        @asynccontextmanager
        async def connection(self) -> AsyncIterator[Any]:
            nonlocal held, most
            held, most = held + 1, max(most, held + 1)
            # as long as many entries take
            await asyncio.sleep(0.01)
            yield stage.log.connection
            held -= 1

    pages: Any = Pages(Counting(), History(None))
    await asyncio.gather(*(pages.read(place, epoch=1) for place in range(30)))
    assert most <= 2


async def test_the_streams_of_a_key_and_of_the_process_are_bounded(
    staged: Callable[..., Any],
) -> None:
    async with staged(
        limits=StreamLimits(clients_max=3, clients_per_key_max=2, send_seconds=5)
    ) as stage:
        mine, other = stage.headers(), stage.headers()
        async with stage.source(), stage.source():
            answer = await stage.client.get("/v1/stream", headers=mine)
            assert (answer.status, (await answer.json())["code"]) == (429, "too_many_requests")
            assert int(answer.headers["Retry-After"]) >= 5
            _, key = await create_key(
                stage.log.connection, name="other", scopes=[Scope.READ], created_by="test"
            )
            other["Authorization"] = f"Bearer {key}"
            third = await stage.client.get("/v1/stream", headers=other)
            assert third.status == 200
            answer = await stage.client.get("/v1/stream", headers=other)
            assert (answer.status, (await answer.json())["code"]) == (503, "overloaded")
            assert int(answer.headers["Retry-After"]) >= 5
            third.close()
        # who hung up stands in nobody's way, though no ping has found out yet
        await until_let_in(stage)


@pytest.mark.parametrize("remembered_seconds", [0.05])
async def test_a_revoked_key_ends_its_streams(staged: Callable[..., Any]) -> None:
    async with staged(
        limits=StreamLimits(clients_max=9, clients_per_key_max=9, send_seconds=5, ping_seconds=0.1)
    ) as stage:
        async with stage.source() as source:
            await revoke_key(stage.log.connection, key_id=stage.key_id, revoked_by="test")
            async with asyncio.timeout(5):
                assert await source.rest() == []
        await stage.until_counted('statesvc_stream_ends_total{cause="revoked"}', 1)


async def test_stopping_ends_all_streams_at_once_and_lets_no_one_in(stage: Stage) -> None:
    async with stage.source() as live, stage.source("/v1/stream?after=-1") as other:
        stage.streams.stop()
        async with asyncio.timeout(1):
            assert await live.rest() == []
            assert await other.rest() == []
    answer = await stage.client.get("/v1/stream", headers=stage.headers())
    assert (answer.status, (await answer.json())["code"]) == (503, "not_ready")
    assert "Retry-After" in answer.headers


async def test_under_pressure_streams_are_shed_and_refused_for_a_while(
    staged: Callable[..., Any],
) -> None:
    under_pressure = False
    async with staged(
        limits=replace(STREAM_LIMITS, check_seconds=0.01, closed_seconds=0.5),
        pressure=lambda: under_pressure,
    ) as stage:
        async with stage.source() as source:
            under_pressure = True
            async with asyncio.timeout(2):
                assert await source.rest() == []
            answer = await stage.client.get("/v1/stream", headers=stage.headers())
            assert (answer.status, (await answer.json())["code"]) == (503, "overloaded")
            under_pressure = False
        await stage.until_counted('statesvc_stream_ends_total{cause="shed"}', 1)
        await until_let_in(stage)


def test_streams_are_shed_when_the_process_is_late_for_long_and_not_for_an_instant() -> None:
    shedder = LoadShedder()
    for _ in range(3):
        for _ in range(CHECKS - 1):
            assert not shedder.check(late_seconds=LATE_SECONDS, pressure=False, now=0)
        assert not shedder.check(late_seconds=0, pressure=False, now=0)
    checks = [shedder.check(late_seconds=0, pressure=True, now=1) for _ in range(CHECKS)]
    assert checks == [False] * (CHECKS - 1) + [True]
    assert shedder.is_closed(1 + CLOSED_SECONDS - 0.1)
    assert not shedder.is_closed(1 + CLOSED_SECONDS)


async def test_a_changed_log_is_never_passed_over(stage: Stage, database: Any) -> None:
    await stage.publish_moves("1Z1")
    async with without_triggers(database.superuser_dsn) as attacker:
        await attacker.execute("DELETE FROM statesvc.event WHERE version = 3")
    async with stage.source("/v1/stream?after=-1") as source:
        await source.rest()
    await stage.until_counted('statesvc_stream_ends_total{cause="failed"}', 1)


async def test_only_transitions_are_looked_at_by_their_batch_or_its_time(stage: Stage) -> None:
    await stage.publish_moves("1Z1")
    await stage.log.connection.execute("SET enable_seqscan = off")
    query = "EXPLAIN " + queries("statesvc.log", "feed")["transitions"]
    span = await recorded_span(stage.log.connection, 0, 9)
    rows = await (
        await stage.log.connection.execute(query.encode(), {"begin": 0, "end": 9, **span})
    ).fetchall()
    plan = "\n".join(row[0] for row in rows)
    assert "Seq Scan" not in plan
    # by the batch's id, or in a partition that was not analyzed yet by its time, which is as narrow
    found = re.findall(
        r"(?:Scan using|Bitmap Index Scan on) transition_\S+[^\n]*\n\s*Index Cond: ([^\n]*)", plan
    )
    assert found
    assert all(
        "batch_id = s.batch_id" in each or "recorded_at <= s.recorded_to" in each for each in found
    ), plan
    assert "sealed_batch_pkey" in plan


async def test_losing_every_connection_loses_no_transition(stage: Stage, database: Any) -> None:
    async with stage.source() as live:
        for place in range(3):
            await stage.move([f"1Z{place}"])
            await stage.log.seal()
            async with await AsyncConnection.connect(
                database.superuser_dsn, autocommit=True
            ) as other:
                await other.execute(KILL, (["sse-test", "statesvc listener"],))
            # nobody says that there is a new checkpoint: the listener looks after it has come back
            async with asyncio.timeout(20):
                told = await live.next(5)
            assert [block.data for block in told] == (await stage.truth())[place * 5 :]


async def test_a_fork_of_the_log_ends_streams_and_clients_that_saw_what_was_lost_are_sent_elsewhere(
    stage: Stage, database: Any
) -> None:
    await stage.publish_moves("1Z1")
    truth = await stage.truth()
    async with stage.source("/v1/stream?after=-1") as source:
        seen = await source.next(len(truth))
        head = await stage.log.opened()
        async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
            # as a fork does it that gives up what came after the first two transitions
            await owner.execute(
                "INSERT INTO statesvc.log_epoch VALUES (2, %s, statesvc.clock())",
                [truth[2]["log_index"]],
            )
        await stage.log.act()
        await stage.publish()
        assert (await stage.log.opened()).epoch == 2
        assert head.epoch == 1
        with pytest.raises(StopAsyncIteration):
            await source.next()
    await stage.until_counted('statesvc_stream_ends_total{cause="forked"}', 1)
    answer = await stage.client.get(
        "/v1/stream", headers=stage.headers(Last_Event_ID=str(seen[-1].id))
    )
    problem = await answer.json()
    assert (answer.status, problem["code"], problem["go_on_after"]) == (
        410,
        "cursor_lost",
        f"2.{truth[2]['log_index'] - 1}",
    )
    async with stage.source(Last_Event_ID=str(seen[1].id)) as source:
        assert [block.id for block in await source.next(1)] == [f"2.{truth[2]['log_index']}"]
