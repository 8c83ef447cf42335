"""What the overview draws: charts and cards of promises, and alarms, each thing to do once."""

import re
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from statesvc.addons.console.charts import MINUTES, Bar, bars, minutes_of
from statesvc.addons.console.overview import alarms_of
from statesvc.addons.console.promise_cards import promise_cards
from statesvc.addons.console.screen import Card
from statesvc.health.finding import Finding, Urgency, worst_first
from statesvc.subscriptions.recorded_attempts import Try
from statesvc.telemetry.objective_minutes import ObjectiveMinute
from statesvc.telemetry.objectives import ACK_AVAILABILITY, MinuteCount, Objective

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


def cards(
    minutes: list[ObjectiveMinute],
    shares: dict[str, MinuteCount] | None = None,
    *,
    oldest: float = 0.0,
) -> dict[str, Card]:
    made = promise_cards(
        minutes, shares or {}, now=NOW, oldest_ready_seconds=oldest, oldest_unsealed_seconds=0.0
    )
    return {card.name.partition(",")[0]: card for card in made}


def minute(objective: Objective, ago: int, *, kept: int = 0, missed: int = 0) -> ObjectiveMinute:
    return ObjectiveMinute(
        NOW.replace(second=0) - timedelta(minutes=ago),
        objective.name,
        MinuteCount(kept=kept, missed=missed),
    )


def test_a_share_below_its_promise_is_bad_and_burns_the_budget() -> None:
    minutes = [minute(ACK_AVAILABILITY, 1, kept=980, missed=20)]
    shares = {ACK_AVAILABILITY.name: MinuteCount(kept=99_980, missed=20)}
    shown = cards(minutes, shares)["Acknowledged"]
    assert (shown.value, shown.style) == ("98", "bad")
    assert shown.note == "60 % left · burns 40×, gone in 1 h 4 min"


def test_what_waits_tells_more_than_what_went_through() -> None:
    shown = cards([], oldest=129.0)["Applied in time"]
    assert (shown.value, shown.unit, shown.style) == ("2 min 9 s", "waits the oldest", "bad")


def late(carrier_id: str, cause: str | None = None) -> Finding:
    return Finding(
        urgency=Urgency.NOW, about=carrier_id, text="900 messages wait", page="Lag", cause=cause
    )


def dead_letters(text: str) -> Finding:
    return Finding(urgency=Urgency.HUMAN, about="dead letters", text=text, page="DeadLettersGrow")


NO_WORKER = Finding(
    urgency=Urgency.NOW, about="processes", text="no worker was heard of", page="RoleDown"
)


def test_carriers_that_wait_for_a_dead_worker_are_one_thing_to_do() -> None:
    (alarm,) = alarms_of(
        worst_first([late("ups", "RoleDown"), NO_WORKER, late("fedex", "RoleDown")])
    )
    assert alarm.first == NO_WORKER
    assert [other.about for other in alarm.others] == ["ups", "fedex"]


def test_carriers_that_wait_without_a_known_cause_are_one() -> None:
    (alarm,) = alarms_of([late("ups"), late("fedex")])
    assert (alarm.first.about, len(alarm.others)) == ("ups", 1)


def test_roles_that_do_not_run_are_one_each() -> None:
    other = Finding(
        urgency=Urgency.NOW, about="processes", text="no notifier was heard of", page="RoleDown"
    )
    assert [alarm.first for alarm in alarms_of([NO_WORKER, other])] == [NO_WORKER, other]


def test_nothing_is_left_out() -> None:
    held = Finding(urgency=Urgency.NOTE, about="usps", text="on hold", page="CarrierHeld")
    findings = [late("usps", "Elsewhere"), NO_WORKER, late("ups", "RoleDown"), held]
    findings += [dead_letters("a"), dead_letters("b")]
    assert sorted(
        one.text for alarm in alarms_of(findings) for one in (alarm.first, *alarm.others)
    ) == sorted(one.text for one in findings)
