from itertools import product

import pytest

from events.vocabulary import Status
from projections.lifecycle import ACTIVE, MOVES, RULES, TERMINAL, Flag, machine

PAIRS = list(product(Status, Status))


class ParcelLog:
    """A model that a `transitions` machine drives; notes the flags that are raised."""

    state: str

    def __init__(self, *, out_again: bool) -> None:
        self.out_again = out_again
        self.raised: list[Flag] = []

    def __getattr__(self, name: str) -> object:
        if name in set(Flag):
            return lambda: self.raised.append(Flag(name))
        raise AttributeError(name)


def test_every_scan_has_an_answer_in_every_status() -> None:
    assert set(PAIRS) <= set(MOVES)


@pytest.mark.parametrize("out_again", [False, True])
def test_the_lookup_answers_as_the_machine_does(*, out_again: bool) -> None:
    parcel = ParcelLog(out_again=out_again)
    driver = machine(parcel)
    for current, scanned in PAIRS:
        driver.set_state(current.value)
        parcel.raised.clear()
        assert driver.events[scanned.value].trigger(parcel)
        move = MOVES[current, scanned]
        flag = move.flag_if_out_again if out_again else move.flag
        assert (parcel.state, parcel.raised) == (move.to.value, [flag] if flag else []), (
            current,
            scanned,
        )


def test_no_rule_is_dead() -> None:
    for index, rule in enumerate(RULES):
        earlier = {
            pair
            for before in RULES[:index]
            if not before.only_if_out_again
            for pair in product(before.sources, before.scans)
        }
        assert set(product(rule.sources, rule.scans)) - earlier, rule


def test_a_scan_never_leads_back_to_unknown() -> None:
    assert all(
        move.to is not Status.UNKNOWN
        for (current, _), move in MOVES.items()
        if current is not Status.UNKNOWN
    )


def test_only_scans_that_are_illegal_or_odd_raise_flags() -> None:
    for (current, scanned), move in MOVES.items():
        if current in {Status.UNKNOWN, Status.INFO_RECEIVED} or scanned is current:
            assert move.flag is None


def test_a_shipment_that_ended_is_moved_by_few_scans() -> None:
    left = {
        (current, move.to)
        for (current, _), move in MOVES.items()
        if current in TERMINAL and move.to is not current
    }
    seen_alive = {*ACTIVE, Status.RETURNING, Status.DELIVERED, Status.RETURNED}
    assert left == {
        (Status.DELIVERED, Status.RETURNING),
        (Status.DELIVERED, Status.RETURNED),
        *((Status.CANCELLED, status) for status in seen_alive),
        *((Status.LOST, status) for status in seen_alive | {Status.DESTROYED}),
    }
