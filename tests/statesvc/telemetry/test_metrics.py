"""Metrics: each documented, measured as said, and a crowd that scrapes costs what the server bounds."""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from statesvc.database.pool import make_pool
from statesvc.telemetry import gauges, names
from statesvc.telemetry.metric import Instrument, Stage
from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.metrics_server import (
    CONNECTIONS_A_SECOND,
    CONNECTIONS_MAX,
    HEAD_SECONDS,
    MADE_EVERY_SECONDS,
    Exposition,
    MetricsServer,
    merged,
)
from tests.metrics_page import PAGE, page, prometheus_name
from tests.statesvc.conftest import HandClock
from tests.world.worker_harness import LIMITS


def test_the_objectives_of_the_ack_are_exact_buckets() -> None:
    telemetry = Telemetry()
    telemetry.ingest_ack_duration.record(0.1, {"carrier": "ups", "outcome": "accepted"})
    telemetry.ingest_ack_duration.record(0.1001, {"carrier": "ups", "outcome": "accepted"})
    text = telemetry.exposition().decode()
    assert (
        'statesvc_ingest_ack_duration_seconds_bucket{carrier="ups",le="0.02",outcome="accepted"}'
        " 0.0" in text
    )
    assert (
        'statesvc_ingest_ack_duration_seconds_bucket{carrier="ups",le="0.1",outcome="accepted"} 1.0'
        in text
    )
    assert (
        'statesvc_ingest_ack_duration_seconds_count{carrier="ups",outcome="accepted"} 2.0' in text
    )


def test_what_counts_trouble_begins_at_zero_and_is_not_set_back() -> None:
    telemetry = Telemetry()
    telemetry.begin_carrier("ups")
    telemetry.messages_retried.add(2, {"carrier": "ups"})
    telemetry.begin_carrier("ups")
    text = telemetry.exposition().decode()
    assert "statesvc_notifications_coalesced_total 0.0" in text
    assert 'statesvc_messages_rescued_total{carrier="ups"} 0.0' in text
    assert 'statesvc_messages_retried_total{carrier="ups"} 2.0' in text
    assert 'statesvc_moves_contradicted_total{carrier="ups",flag="contradicted"} 0.0' in text


async def test_pools_and_listeners_are_read_when_somebody_scrapes(database: Any) -> None:
    telemetry = Telemetry()
    up = [1.0]
    telemetry.observe(gauges.LISTENER_UP, lambda: [(up[0], {})])
    assert "statesvc_listener_up 1.0" in telemetry.exposition().decode()
    up[0] = 0.0
    limits = replace(LIMITS, connections_max=2)
    async with make_pool(database.service_dsn, name="test", limits=limits) as pool:
        telemetry.observe_pools({"service": pool})
        async with pool.connection(), pool.connection():
            text = telemetry.exposition().decode()
    assert "statesvc_listener_up 0.0" in text
    assert 'statesvc_pool_connections{pool="service",state="used"} 2.0' in text
    assert 'statesvc_pool_errors_total{pool="service",type="connections"} 0.0' in text


def test_a_stage_is_timed_when_it_fails_too() -> None:
    telemetry = Telemetry()
    with pytest.raises(ValueError, match="no"), telemetry.stage(Stage.APPEND, messages=3):
        raise ValueError("no")
    assert (
        'statesvc_batch_stage_duration_seconds_count{stage="append"} 1.0'
        in telemetry.exposition().decode()
    )


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.metrics_page"


def test_a_scrape_shows_the_names_of_the_page() -> None:
    telemetry = Telemetry()
    for metric in names.METRICS:
        if metric.instrument in {Instrument.OBSERVED_GAUGE, Instrument.OBSERVED_COUNTER}:
            telemetry.observe(metric, lambda: [(1.0, {})])
    for name, instrument in vars(telemetry).items():
        record = (
            None
            if name.startswith("_")
            else getattr(instrument, "record", None) or getattr(instrument, "add", None)
        )
        if record is not None:
            record(1)
    shown = set(
        re.findall(
            r"^(statesvc_\w+?)(?:_bucket|_sum|_count)?(?:\{| )",
            telemetry.exposition().decode(),
            re.MULTILINE,
        )
    )
    assert shown == {prometheus_name(metric) for metric in names.METRICS}


CROWD = 90
CROWDED_SECONDS = 2.0


class Served:
    def __init__(self) -> None:
        self.asked = 0
        self.at_once = 0
        self.at_once_max = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]

    async def text(self) -> bytes:
        self.asked += 1
        self.at_once += 1
        self.at_once_max = max(self.at_once_max, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return b"x 1\n"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    server = MetricsServer(made.listener, {"/metrics": made.text})
    server.start()
    yield made
    await server.close()


async def ask(port: int, head: bytes = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_a_crowd_is_served_at_the_pace_of_the_server(served: Served) -> None:
    started = time.monotonic()

    async def again_and_again() -> None:
        while time.monotonic() < started + CROWDED_SECONDS:
            assert (await ask(served.port)).endswith(b"\r\n\r\nx 1\n")

    await asyncio.gather(*(again_and_again() for _ in range(CROWD)))
    assert served.asked <= CONNECTIONS_A_SECOND * (time.monotonic() - started) + 1
    assert served.at_once_max <= CONNECTIONS_MAX


async def test_who_says_nothing_is_cut_off_and_keeps_nobody_out(served: Served) -> None:
    silent = [
        await asyncio.open_connection("127.0.0.1", served.port) for _ in range(CONNECTIONS_MAX)
    ]
    started = time.monotonic()
    assert (await ask(served.port)).startswith(b"HTTP/1.1 200 OK\r\n")
    assert time.monotonic() - started < HEAD_SECONDS * 5
    for reader, writer in silent:
        assert await reader.read() == b""
        writer.close()


async def test_other_paths_and_methods_get_nothing(served: Served) -> None:
    assert (await ask(served.port, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
    assert (await ask(served.port, b"POST /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405 ")
    assert (await ask(served.port, b"\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
    assert (await ask(served.port, b"GET /metrics?x=1 HTTP/1.0\r\n\r\n")).startswith(
        b"HTTP/1.1 200 "
    )
    assert served.asked == 1


async def test_a_text_is_made_once_a_second_however_many_ask() -> None:
    clock, made = HandClock(), list[int]()

    async def make() -> bytes:
        made.append(len(made))
        await asyncio.sleep(0)
        return b"%d" % len(made)

    exposition = Exposition(make, now=clock)
    assert set(await asyncio.gather(*(exposition.text() for _ in range(90)))) == {b"1"}
    clock.seconds += MADE_EVERY_SECONDS / 2
    assert await exposition.text() == b"1"
    clock.seconds += MADE_EVERY_SECONDS / 2
    assert set(await asyncio.gather(*(exposition.text() for _ in range(90)))) == {b"2"}


def test_the_metrics_of_several_roles_are_one_text_that_prometheus_reads() -> None:
    ingress, api = Telemetry(), Telemetry()
    ingress.refusals.add(3, {"cause": "storage_low"})
    api.refusals.add(1, {"cause": "rate"})
    api.observe(gauges.LISTENER_UP, lambda: [(1.0, {})])
    text = merged({"ingress": ingress.exposition(), "api": api.exposition(), "worker": b""})
    families = list(text_string_to_metric_families(text.decode()))
    assert len({family.name for family in families}) == len(families), "each metric stands once"
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    assert samples["statesvc_refusals_total", ("cause", "storage_low"), ("role", "ingress")] == 3
    assert samples["statesvc_refusals_total", ("cause", "rate"), ("role", "api")] == 1
    assert samples["statesvc_listener_up", ("role", "api")] == 1
    assert all("role" in sample.labels for family in families for sample in family.samples)
