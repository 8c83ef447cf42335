"""The parts of the stream that need no database: its contract and the strain."""

from typing import Any, cast

from statesvc.addons.stream.admission import CHECKS, CLOSED_SECONDS, LATE_SECONDS, LoadShedder
from statesvc.addons.stream.routes import stream_route
from statesvc.addons.stream.tickets import Tickets
from statesvc.http.keys.signed_token import TokenSigner
from statesvc.http.openapi import build_document


def test_it_is_described_as_events_for_keys_that_may_read() -> None:
    route = stream_route(cast("Any", None), Tickets(TokenSigner(b"")))
    described = build_document([route], version="1")["paths"]["/v1/stream"]["get"]
    assert described["security"] == [{"key": ["read"]}, {"ticket": []}]
    assert "text/event-stream" in described["responses"]["200"]["content"]


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
