"""The parts of the stream that need no database: its contract, the window and the strain."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from statesvc.addons.stream.admission import CHECKS, CLOSED_SECONDS, LATE_SECONDS, LoadShedder
from statesvc.addons.stream.routes import stream_route
from statesvc.addons.stream.tickets import Tickets
from statesvc.addons.stream.window import Frame, Window
from statesvc.api.transition_operations import TransitionChoice
from statesvc.http.keys.signed_token import TokenSigner
from statesvc.http.openapi import build_document

ANY = TransitionChoice()


def frame(index: int) -> Frame:
    return Frame(index, "ups" if index % 2 else "fedex", "delivered", b"")


def test_it_is_described_as_events_for_keys_that_may_read() -> None:
    route = stream_route(cast("Any", None), Tickets(TokenSigner(b"")))
    described = build_document([route], version="1")["paths"]["/v1/stream"]["get"]
    assert described["security"] == [{"key": ["read"]}, {"ticket": []}]
    assert "text/event-stream" in described["responses"]["200"]["content"]


@given(
    start=st.integers(0, 50),
    pages=st.lists(st.tuples(st.integers(1, 30), st.sets(st.integers(0, 29))), max_size=12),
    limit=st.integers(1, 7),
    moves=st.lists(st.integers(0, 5), max_size=12),
)
def test_a_reader_that_stays_inside_sees_each_frame_once_however_the_window_grows(
    start: int, pages: list[tuple[int, set[int]]], limit: int, moves: list[int]
) -> None:
    window, next_index, seen, there = Window(start, frames_max=20), start, [], []
    for place, (length, offsets) in enumerate(pages):
        begin = window.end
        frames = [frame(begin + offset) for offset in sorted(offsets) if offset < length]
        window.extend(frames, end=begin + length)
        there += frames
        assert all(each.index >= window.begin for each in there[-20:])
        if next_index < window.begin:
            # behind: it reads the log itself
            seen += [each for each in there if next_index <= each.index < window.begin]
            next_index = window.begin
        for _ in range(moves[place] if place < len(moves) else 1):
            step = window.step(next_index, ANY, limit=limit)
            assert len(step.frames) <= limit
            seen += step.frames
            next_index = step.next_index
    while next_index < window.end:
        step = window.step(next_index, ANY, limit=limit)
        seen += step.frames
        next_index = step.next_index
    assert seen == there


def test_a_reader_who_knows_a_newer_head_than_the_window_does_not_go_back() -> None:
    window = Window(10)
    assert window.step(15, ANY, limit=9).next_index == 15
    window.extend([frame(12), frame(16)], end=20)
    step = window.step(15, ANY, limit=9)
    assert [each.index for each in step.frames] == [16]
    assert step.next_index == 20


def test_what_nobody_selected_is_passed_at_once() -> None:
    window = Window(0)
    window.extend([frame(index) for index in range(100)], end=100)
    assert window.step(0, TransitionChoice(carrier_id=["usps"]), limit=1).next_index == 100
    step = window.step(0, TransitionChoice(carrier_id=["ups"]), limit=3)
    assert ([each.index for each in step.frames], step.next_index) == ([1, 3, 5], 7)


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
