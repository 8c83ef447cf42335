"""The simulation of a lost cell: nothing is invented, and what is lost is what carriers give up."""

import pytest

from tests.simulation.cell_loss import MINUTES_A_DAY, RETRIES, SENDING_DAYS, Fleet, lose_cell

FLEET = Fleet()


@pytest.mark.parametrize("retries", RETRIES.values(), ids=RETRIES)
@pytest.mark.parametrize("minutes", [0, 0.5, 30, 240])
def test_what_was_sent_was_taken_or_given_up(retries: tuple[int, ...], minutes: float) -> None:
    loss = lose_cell(FLEET, retries, minutes=minutes)
    assert loss.taken + loss.lost == pytest.approx(loss.sent)
    assert loss.sent == pytest.approx(FLEET.messages_a_day / FLEET.cells * SENDING_DAYS)
    assert (loss.late + loss.lost == 0) == (minutes == 0)


def test_a_carrier_loses_what_it_sends_earlier_than_its_last_try_before_the_return() -> None:
    assert lose_cell(FLEET, (5, 10, 15), minutes=14).lost == 0
    assert lose_cell(FLEET, (5, 10, 15), minutes=60).lost > 0
    assert lose_cell(FLEET, RETRIES["AfterShip, 14 times in 68 h"], minutes=24 * 60).lost == 0


def test_the_day_has_its_peak() -> None:
    offered = [FLEET.offered(minute) for minute in range(MINUTES_A_DAY)]
    assert max(offered) == pytest.approx(FLEET.peak * sum(offered) / len(offered))
