"""A transfer from a file: lost, refused, and what becomes of its lines."""

import asyncio
import subprocess
import sys
from unittest.mock import AsyncMock

import pytest

from statesvc.addons.shovel import shovel_runs
from statesvc.addons.shovel import transfer as loop
from statesvc.addons.shovel.shovel_setup import stop_event
from statesvc.addons.shovel.source_message import ShovelError, SourceLostError
from statesvc.addons.shovel.sources import LineSource
from tests.addons.shovel.conftest import World
from tests.world.celery_fleet import TASK
from tests.world.shovel_story import body

ONE = {"task": TASK, "id": "one", "args": [body(1)]}


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Errors of a file when it is opened: each once, after the check at the start."""
    errors: list[Exception] = []
    opened = LineSource.open
    checked = []

    async def failing(source: LineSource) -> None:
        checked.append(True)
        if len(checked) > 1 and errors:
            raise errors.pop(0)
        await opened(source)

    monkeypatch.setattr(LineSource, "open", failing)
    monkeypatch.setattr(loop, "_AGAIN_SECONDS", 0)
    return errors


@pytest.mark.usefixtures("own_processes")
async def test_a_source_that_is_lost_or_starting_is_opened_again(
    world: World, errors: list[Exception]
) -> None:
    errors += [SourceLostError("gone"), ShovelError("no such queue")]
    assert "1 taken: 1 into the inbox" in await world.shovel_lines(ONE)
    assert errors == []


async def test_a_slow_pace_does_not_delay_the_stop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped_at_once() -> asyncio.Event:
        stop = stop_event()
        monkeypatch.setattr(LineSource, "acknowledge", AsyncMock(side_effect=lambda _: stop.set()))
        return stop

    monkeypatch.setattr(shovel_runs, "stop_event", stopped_at_once)
    async with asyncio.timeout(30):
        assert "1 taken" in await world.shovel_lines(ONE, ONE, given=("--rate", "0.001"))


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("client", ["aiormq", "redis"])
def test_without_the_extra_it_says_what_to_install(client: str) -> None:
    code = (
        f"import sys; sys.modules[{client!r}] = None; from statesvc.cli import main;"
        " sys.exit(main(['shovel', '--from', 'x']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (
        2,
        "statesvc: the clients of brokers are not installed: pip install 'statesvc[shovel]'\n",
    )


@pytest.mark.usefixtures("own_processes")
async def test_a_message_that_can_not_be_read_stops_the_transfer_and_processes_is_ignored(
    world: World,
) -> None:
    answer = await world.shovel_lines({"id": 1}, given=("--processes", "2"), exit_code=1)
    assert "the line has neither `task` nor `body`" in answer
    assert "--processes is ignored" in answer


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("batch", ["100", "1"])
async def test_another_task_with_an_id_that_was_there_is_another_message(
    world: World, batch: str
) -> None:
    first, other = ({"task": TASK, "id": "one", "args": [body(number)]} for number in (1, 2))
    strange = {"task": "shop.unheard_of", "id": "one", "args": [body(3)]}
    lines = [
        first,
        other,
        {**first, "retries": 1, "eta": None},
        other,
        strange,
        {**strange, "args": []},
        {"task": TASK, "id": "two", "args": [body(1)]},
    ]
    said = await world.shovel_lines(*lines, given=("--batch", batch))
    assert "7 taken: 3 into the inbox, 2 to the dead letters, 2 were there already" in said
    bodies = sorted(arrived.body.decode() for arrived in await world.arrived())
    assert bodies == sorted([body(1), body(1), body(2)])
    assert [cause for cause, _ in await world.dead_letters()] == ["unmapped_task"] * 2
    again = await world.shovel_lines(*lines, given=("--batch", batch))
    assert "7 taken: 0 into the inbox, 0 to the dead letters, 7 were there already" in again


@pytest.mark.usefixtures("own_processes")
async def test_messages_of_a_history_are_marked_so_that_nobody_is_notified(world: World) -> None:
    await world.shovel_lines(ONE, given=("--no-notify",))
    headers = "SELECT headers ->> 'statesvc-notify' FROM statesvc.body"
    assert await world.rows(headers) == [("false",)]
