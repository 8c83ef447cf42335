"""The loop of a transfer without a broker: lost, refused, and what it makes of one file."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from events.carriers import CARRIERS
from statesvc.addons.shovel import transfer as loop
from statesvc.addons.shovel.source_message import ShovelError, SourceLostError, Taken
from statesvc.addons.shovel.task_mapping import parse_mapping
from statesvc.addons.shovel.transfer import Pace, TransferTask, transfer
from tests.addons.shovel.conftest import World
from tests.world.celery_fleet import TASK
from tests.world.shovel_story import MAPPING, body


class FakeSource:
    """Refuses, or is lost, as often as it is given errors for; then it is empty."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.opened = 0

    async def open(self) -> None:
        self.opened += 1
        if self.errors:
            raise self.errors.pop(0)

    async def take(self, limit: int, *, wait_seconds: float) -> Sequence[Taken]:
        del limit, wait_seconds
        return []

    async def acknowledge(self, taken: Sequence[Taken]) -> None:
        del taken

    async def waiting(self) -> int:
        return 0

    async def sample(self, limit: int) -> Sequence[Taken]:
        del limit
        return []

    async def close(self) -> None:
        pass


def task(source: FakeSource, *, asks_max: int, heard: list[str]) -> TransferTask:
    asked: list[None] = []

    def stopping() -> bool:
        asked.append(None)
        return len(asked) > asks_max

    nothing: Any = None
    return TransferTask(
        source=source,
        mapping=parse_mapping(MAPPING, name="m", carriers=CARRIERS),
        pool=nothing,
        keyring=nothing,
        backup=None,
        actor="test",
        batch_max=10,
        until_empty=True,
        pace=Pace(None),
        stopping=stopping,
        report=lambda _totals: None,
        notice=heard.append,
    )


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_AGAIN_SECONDS", "_IDLE_SECONDS"):
        monkeypatch.setattr(loop, name, 0)


async def test_a_source_that_is_lost_or_starting_is_opened_again() -> None:
    heard: list[str] = []
    source = FakeSource(SourceLostError("gone"), ShovelError("no such queue"))
    await transfer(task(source, asks_max=9, heard=heard))
    assert (source.opened, heard) == (3, ["gone; trying again", "no such queue; trying again"])


async def test_a_source_that_goes_on_refusing_ends_the_transfer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "_REFUSED_SECONDS_MAX", -1)
    with pytest.raises(ShovelError, match="no such queue"):
        await transfer(task(FakeSource(*[ShovelError("no such queue")] * 2), asks_max=9, heard=[]))


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
    world: World, tmp_path: Path
) -> None:
    path = tmp_path / "old.ndjson"
    path.write_text('{"id": 1}\n')
    answer = await world.shovel(str(path), "--processes", "2", exit_code=1)
    assert "the line has neither `task` nor `body`" in answer
    assert "--processes is ignored" in answer


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("batch", ["100", "1"])
async def test_another_task_with_an_id_that_was_there_is_another_message(
    world: World, tmp_path: Path, batch: str
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
    path = tmp_path / "old.ndjson"
    path.write_text("\n".join(map(json.dumps, lines)))
    said = await world.shovel(str(path), "--batch", batch)
    assert "7 taken: 3 into the inbox, 2 to the dead letters, 2 were there already" in said
    bodies = sorted(arrived.body.decode() for arrived in await world.arrived())
    assert bodies == sorted([body(1), body(1), body(2)])
    assert [cause for cause, _ in await world.dead_letters()] == ["unmapped_task"] * 2
    again = await world.shovel(str(path), "--batch", batch)
    assert "7 taken: 0 into the inbox, 0 to the dead letters, 7 were there already" in again


@pytest.mark.usefixtures("own_processes")
async def test_messages_of_a_history_are_marked_so_that_nobody_is_notified(
    world: World, tmp_path: Path
) -> None:
    path = tmp_path / "old.ndjson"
    path.write_text(json.dumps({"task": TASK, "id": "one", "args": [body(1)]}))
    await world.shovel(str(path), "--no-notify")
    headers = "SELECT headers ->> 'statesvc-notify' FROM statesvc.body"
    assert await world.rows(headers) == [("false",)]
