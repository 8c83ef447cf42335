"""Refusals are counted one by one and logged by kind and minute."""

import asyncio

import structlog

from statesvc.telemetry.metrics import Telemetry
from statesvc.telemetry.minute_log import Refusals


async def test_the_first_of_a_kind_is_logged_at_once_and_the_others_together() -> None:
    telemetry = Telemetry()
    refusals = Refusals(telemetry, every_seconds=0.1)
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as logged:
        with structlog.contextvars.bound_contextvars(token="of one request"):
            for _ in range(500):
                refusals.count("head_timeout")
        refusals.count("connections")
        assert [(line["cause"], line["count"]) for line in logged] == [
            ("head_timeout", 1),
            ("connections", 1),
        ]
        async with asyncio.timeout(5):
            while len(logged) < 3:  # noqa: ASYNC110 - a timer logs it
                await asyncio.sleep(0.01)
        assert (logged[2]["cause"], logged[2]["count"]) == ("head_timeout", 499)
        assert ["token" in line for line in logged] == [True, False, False], (
            "a sum is about no single one"
        )
    exposed = telemetry.exposition().decode()
    assert 'statesvc_refusals_total{cause="head_timeout"} 500.0' in exposed
    assert 'statesvc_refusals_total{cause="connections"} 1.0' in exposed
    telemetry.close()
