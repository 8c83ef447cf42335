"""A sealer whose clock and the database's disagree seals nothing, whichever is wrong, and says
so.
"""

import io
import json
from typing import Any

import pytest
import structlog

from statesvc.sealer import sealer_loop as loop
from statesvc.sealer.clock_check import ClockCheck, ClockError
from statesvc.telemetry.logs import pipeline
from tests.statesvc.sealer.test_sealer_loop import running, until
from tests.world.story import Story, story

HOUR = 3600.0


async def refuses(sealer: Any) -> bool:
    return sealer.refusal is not None


async def commit(log: Story, sealer: Any) -> None:
    """Commit something to seal; the sealer is woken, as by any commit of the service."""
    await log.act()
    sealer._woken.set()  # noqa: SLF001 - without a connection of its own for one notification


async def is_sealed(log: Story, size: int) -> bool:
    rows: list[tuple[int]] = await log.rows(
        "SELECT coalesce(max(tree_size), 0) FROM statesvc.checkpoint"
    )
    return rows[0][0] >= size


@pytest.mark.parametrize(("shift", "side"), [(HOUR, "s ahead of"), (-HOUR, "s behind")])
async def test_a_clock_that_steps_stops_the_sealing_and_is_named_until_it_is_right(
    database: Any, monkeypatch: pytest.MonkeyPatch, shift: float, side: str
) -> None:
    monkeypatch.setattr(loop, "_CLOCK_SECONDS", 0.05)
    lines = io.StringIO()
    structlog.configure(
        processors=pipeline("sealer", "json"), logger_factory=structlog.PrintLoggerFactory(lines)
    )
    async with story(database) as log, running(database) as (sealer, _):
        await commit(log, sealer)
        await until(lambda: is_sealed(log, 1))
        await database.clock.advance(shift)
        sealer._woken.set()  # noqa: SLF001 - as a commit would
        await until(lambda: refuses(sealer))
        assert side in str(sealer.refusal)
        assert abs(sealer.clock.database_ahead_seconds - shift) < 5
        assert not sealer.leads
        await database.clock.advance(-shift)
        await commit(log, sealer)
        await until(lambda: is_sealed(log, 2))
        assert sealer.refusal is None
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    refusals = [one for one in said if one["event"] == "sealer_refuses"]
    assert {one["level"] for one in refusals} == {"error"}
    assert all(side in one["why"] for one in refusals)


async def test_a_few_seconds_are_borne(database: Any) -> None:
    await database.clock.advance(3)
    async with story(database) as log, running(database) as (sealer, _):
        await commit(log, sealer)
        await until(lambda: is_sealed(log, 1))
        assert 1 < sealer.clock.database_ahead_seconds < 4


async def test_what_was_sealed_or_recorded_in_the_future_is_not_sealed_upon(database: Any) -> None:
    async with story(database) as log:
        await ClockCheck().check(log.connection)
        await database.clock.advance(HOUR)
        await log.act()
        await database.clock.advance(-HOUR)
        with pytest.raises(
            ClockError,
            match=r"waits to be sealed was recorded at .* has not come yet.*CLOCK_SECONDS_MAX",
        ):
            await ClockCheck().check(log.connection)
        await ClockCheck(seconds_max=2 * HOUR).check(log.connection)
        await database.clock.advance(HOUR)
        await log.seal()
        await database.clock.advance(-HOUR)
        with pytest.raises(ClockError, match="the newest sealed entry was sealed"):
            await ClockCheck().check(log.connection)
