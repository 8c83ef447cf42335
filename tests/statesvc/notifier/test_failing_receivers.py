"""Failing receivers: when they are warned of and disabled."""

from datetime import UTC, datetime, timedelta

import pytest

from statesvc.delivery.outcome import AttemptOutcome
from statesvc.notifier.policy import Failing, Judgement, blames_receiver, judge

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("now_hours", "last_hours", "failures", "warned", "expected"),
    [
        (23.9, 23.9, 500, "", Judgement.WAIT),
        (24, 23, 2, "", Judgement.WARN),
        (24, 11.9, 500, "", Judgement.WAIT),
        (30, 29, 9, "warned", Judgement.WAIT),
        (119.9, 119, 500, "warned", Judgement.WAIT),
        (120, 119, 20, "warned", Judgement.DISABLE),
        (120, 119, 20, "", Judgement.DISABLE),
        (120, 119, 19, "warned", Judgement.WAIT),
        (120, 119, 19, "", Judgement.WARN),
        (500, 11.9, 500, "warned", Judgement.WAIT),
        (500, 12, 20, "warned", Judgement.DISABLE),
    ],
)
def test_warns_after_a_day_and_disables_after_five_with_failures_enough_and_apart(
    now_hours: float, last_hours: float, failures: int, warned: str, expected: Judgement
) -> None:
    failing = Failing(
        since=SINCE,
        last_at=SINCE + last_hours * HOUR,
        failures=failures,
        warned_at=SINCE + 24 * HOUR if warned else None,
    )
    assert judge(failing, now=SINCE + now_hours * HOUR) is expected


def test_what_we_could_not_sign_or_left_out_is_no_fault_of_the_receiver() -> None:
    assert {outcome for outcome in AttemptOutcome if not blames_receiver(outcome)} == {
        *(AttemptOutcome.DELIVERED, AttemptOutcome.UNSIGNED, AttemptOutcome.CLIENT_MISSING),
    }
