from datetime import UTC, datetime, timedelta

from statesvc.addons.console.promise_cards import promise_cards
from statesvc.addons.console.screen import Card
from statesvc.telemetry.objective_minutes import ObjectiveMinute
from statesvc.telemetry.objectives import ACK_AVAILABILITY, MinuteCount, Objective

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


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
