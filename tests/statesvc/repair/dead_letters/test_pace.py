import pytest

from statesvc.repair.dead_letters.replay_pace import JUDGED_MIN, ReplayEnd, ReplayLimits, ReplayPace


def test_only_the_canary_goes_out_until_all_of_it_has_a_verdict() -> None:
    pace = ReplayPace(ReplayLimits(canary=10, per_second=None))
    assert pace.allowance(0) == 10
    pace.release(10)
    assert pace.allowance(100) == 0
    pace.judge(101, settled=9, failed=0)
    assert (pace.allowance(101), pace.is_open) == (0, False)
    pace.judge(102, settled=1, failed=0)
    assert (pace.is_open, pace.stop(), pace.allowance(102)) == (True, None, 2000)


@pytest.mark.parametrize(("failed", "stopped"), [(1, None), (2, ReplayEnd.CANARY_FAILED)])
def test_a_canary_with_too_many_failures_stops_even_before_all_are_judged(
    failed: int, stopped: ReplayEnd | None
) -> None:
    pace = ReplayPace(ReplayLimits(canary=20, stop_at_percent=5))
    pace.release(20)
    pace.judge(1, settled=0, failed=failed)
    assert pace.stop() is stopped


def test_the_rate_counts_from_the_end_of_the_canary() -> None:
    pace = ReplayPace(ReplayLimits(canary=5, per_second=10))
    pace.release(5)
    pace.judge(60, settled=5, failed=0)
    assert pace.allowance(60) == 0
    assert pace.allowance(62) == 20
    pace.release(20)
    assert pace.allowance(62) == 0


def test_what_waits_without_a_verdict_is_bounded() -> None:
    pace = ReplayPace(ReplayLimits(canary=0, per_second=None, waiting_max=50))
    pace.release(50)
    assert pace.allowance(1000) == 0
    pace.judge(1000, settled=10, failed=0)
    assert pace.allowance(1000) == 10


def test_errors_that_rise_late_stop_a_run_that_went_well() -> None:
    pace = ReplayPace(ReplayLimits(canary=0, stop_at_percent=5))
    pace.release(11_000)
    for second in range(100):
        pace.judge(second, settled=100, failed=0)
    assert pace.stop() is None
    pace.judge(101, settled=94, failed=6)
    assert pace.stop() is ReplayEnd.ERRORS_ROSE, "6 of the last hundred, not of ten thousand"


def test_a_few_verdicts_prove_nothing() -> None:
    pace = ReplayPace(ReplayLimits(canary=0, stop_at_percent=0))
    pace.release(JUDGED_MIN)
    pace.judge(1, settled=0, failed=JUDGED_MIN - 1)
    assert pace.stop() is None
    pace.judge(2, settled=1, failed=0)
    assert pace.stop() is ReplayEnd.ERRORS_ROSE
