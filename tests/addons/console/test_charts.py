"""Charts: what stands beside a scale is not written over."""

import re
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from statesvc.addons.console.charts import MINUTES, Bar, bars, limiter_charts, minutes_of
from statesvc.subscriptions.recorded_attempts import RecentTries, Try

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


def begun(seconds_ago: float, duration_ms: int = 100, outcome: str = "delivered") -> Try:
    return Try(
        started_at=NOW - timedelta(seconds=seconds_ago), duration_ms=duration_ms, outcome=outcome
    )


def test_each_attempt_counts_in_the_minute_that_it_began_in() -> None:
    hour = minutes_of(
        [begun(10), begun(29, outcome="refused"), begun(31), begun(59 * 60), begun(3 * 3600)],
        now=NOW,
    )
    assert len(hour) == MINUTES
    assert hour[-1].begins == NOW.replace(second=0)
    assert [(one.delivered, one.failed) for one in hour[-2:]] == [(1, 0), (1, 1)]
    assert sum(one.delivered + one.failed for one in hour) == 4


@given(st.lists(st.tuples(st.integers(0, 3590), st.integers(0, 90_000)), max_size=30))
def test_no_minute_has_more_under_way_than_touch_it_nor_fewer_than_a_look_at_any_time_finds(
    tries: list[tuple[int, int]],
) -> None:
    known = [begun(seconds_ago, duration_ms) for seconds_ago, duration_ms in tries]
    for minute in minutes_of(known, now=NOW):
        ends = minute.begins + timedelta(minutes=1)
        touching = sum(one.started_at < ends and one.ended_at > minute.begins for one in known)
        begins = [
            minute.begins,
            *(one.started_at for one in known if minute.begins <= one.started_at < ends),
        ]
        assert (
            minute.in_flight
            == max(sum(one.started_at <= at < one.ended_at for one in known) for at in begins)
            <= touching
        )


def test_the_charts_say_in_words_what_they_show() -> None:
    requests, in_flight = limiter_charts(
        RecentTries(now=NOW, tries=[begun(10), begun(10.01)], is_capped=False), limit=8
    )
    assert "minute by minute: 2</title>" in requests.picture
    assert "2 at most; 8 are allowed now</title>" in in_flight.picture
    assert 'class="mark"' in in_flight.picture
    assert "only what began since" not in requests.note
    capped = RecentTries(now=NOW, tries=[begun(10)], is_capped=True)
    assert "only what began since" in limiter_charts(capped, limit=8)[0].note
    assert limiter_charts(RecentTries(now=NOW, tries=[], is_capped=False), limit=8) == []


def test_columns_end_before_the_numbers_of_the_scale_and_only_the_highest_has_the_unit() -> None:
    drawn = str(bars([Bar("a", (2500,)), Bar("b", (900,))], title="pushes", unit=" a minute"))
    ends = [
        float(x) + float(width)
        for x, width in re.findall(r'<rect [^>]*x="([\d.]+)%"[^>]* width="([\d.]+)%"', drawn)
    ]
    assert max(ends) < 91
    assert re.findall(r'text-anchor="end">([^<]*)<', drawn) == ["1,000", "2,000", "3,000 a minute"]
    alone = str(bars([Bar("a", (2,)), Bar("b", (1,))], title="pushes"))
    assert 'x="50.00%"' in alone, "without a scale they have all the room"
