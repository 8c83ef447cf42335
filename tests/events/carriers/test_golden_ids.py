import pytest

from events.carriers import CARRIERS
from tests.events.carriers.golden import changes, current, golden, landed, released_changes

HOW = "`python -m tests.events.carriers.golden --write` adds the ids of new fixtures"


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_the_ids_of_a_carriers_events_are_those_that_landed(carrier_id: str) -> None:
    now = current(carrier_id)
    assert now, f"{carrier_id} has no fixtures in tests/events/carriers/fixtures/{carrier_id}"
    changed = changes(carrier_id, landed().get(carrier_id, {}), now)
    assert not changed, (
        "event ids never change once they have landed (every scan would be appended again):\n"
        + "\n".join(changed)
    )
    committed = golden().get(carrier_id, {})
    unlisted = now.keys() - committed.keys()
    assert not unlisted, (
        f"{', '.join(sorted(unlisted))} of {carrier_id} not in golden_ids.json; {HOW}"
    )
    changed = changes(carrier_id, committed, now)
    assert not changed, (
        f"not what golden_ids.json says; where these ids have not landed yet, {HOW}:\n"
        + "\n".join(changed)
    )


@pytest.mark.parametrize("carrier_id", CARRIERS)
def test_what_0_1_0_appended_is_a_duplicate_now(carrier_id: str) -> None:
    assert released_changes(carrier_id) == []


def test_no_carrier_with_landed_ids_goes_away() -> None:
    assert golden().keys() | landed().keys() <= CARRIERS.keys()


def test_a_changed_id_a_lost_event_and_a_lost_fixture_are_named_and_an_added_one_is_not() -> None:
    before = {"a.json": ["d1-1", "d1-2"], "b.json": ["d1-3"], "c.json": [], "d.json": "unreadable"}
    now = {"a.json": ["d1-1", "d1-9"], "c.json": ["d1-4"], "d.json": ["d1-5"], "e.json": ["d1-6"]}
    assert changes("ups", before, before | now) == [
        "ups/a.json: the id of event 1 was d1-2, is d1-9",
        "ups/c.json: had 0 events, has 1",
        "ups/d.json: was unreadable, is ['d1-5']",
    ]
    assert [line.split(":")[0] for line in changes("ups", before, now)] == [
        "ups/a.json",
        "ups/b.json",
        "ups/c.json",
        "ups/d.json",
    ]
