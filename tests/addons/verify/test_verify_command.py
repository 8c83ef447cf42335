"""`statesvc verify` and the keys of the log at the shell."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from events.merkle.checkpoint import NoteSigner
from statesvc.addons.verify.event_ids import FACTS
from statesvc.cli import main
from tests.world.attack import attack, sealed_story

MASTER_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def shell(
    database: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setenv("DATABASE_URL", database.service_dsn)
    monkeypatch.setenv("STATESVC_MASTER_KEY", MASTER_KEY)

    async def call(*arguments: str, exit_code: int = 0) -> str:
        ended = await asyncio.to_thread(main, arguments)
        printed = capsys.readouterr()
        assert ended == exit_code, printed.out + printed.err
        return printed.out if ended == 0 or "--json" in arguments else printed.out + printed.err

    return call


@pytest.mark.usefixtures("own_processes")
async def test_a_sound_log_and_a_changed_one(database: Any, shell: Any, tmp_path: Path) -> None:
    async with sealed_story(database) as log:
        head = tmp_path / "head"
        head.write_text(
            (await log.rows("SELECT note FROM statesvc.checkpoint ORDER BY tree_size LIMIT 1"))[0][
                0
            ]
        )
        said = await shell("verify", "--checkpoint", str(head), "--processes", "1")
        assert said.startswith("The log is sound: ")
        assert f"begins with the log that {head} is the head of" in said
        said = await shell("verify", "--processes", "1")
        assert said.startswith("The log is consistent with itself: ")
        assert "sound" not in said
        assert "shows only with a key from outside this database: --key" in said
        assert "shows only against a head" in said
        await attack(
            database,
            "UPDATE statesvc.event SET kind = 'info' WHERE version = 2 AND status = 'picked_up'",
        )
        said = await shell("verify", "--processes", "1", exit_code=1)
        assert "kind: is not what the entry's canonical bytes say" in said
        assert "THE LOG WAS CHANGED" in said


@pytest.mark.usefixtures("own_processes")
async def test_a_state_that_was_changed_is_found(database: Any, shell: Any) -> None:
    async with sealed_story(database):
        await shell("verify", "--processes", "1")
        await attack(
            database, "UPDATE statesvc.shipment SET status = 'lost' WHERE number = '1Z0001'"
        )
        said = await shell("verify", "--processes", "1", exit_code=3)
        assert "status: is not what the shipment's events add up to" in said
        assert "The log is consistent with itself" in said
        assert "The projection differs from the log: 1 shipments" in said
        assert "statesvc rebuild shipment" in said
        assert "THE LOG WAS CHANGED" not in said
        report = json.loads(await shell("verify", "--json", "--processes", "1", exit_code=3))
        assert (
            report["consistent"],
            report["faults"],
            len(report["projection"]),
            report["shipments_drifted"],
        ) == (True, [], 1, 1)
        await attack(
            database,
            "UPDATE statesvc.event SET kind = 'info' WHERE version = 2 AND status = 'picked_up'",
        )
        assert "THE LOG WAS CHANGED" in await shell("verify", "--processes", "1", exit_code=1)
        await attack(
            database,
            "UPDATE statesvc.event SET kind = 'scan' WHERE version = 2 AND status = 'picked_up'",
        )
        await shell("verify", "--skip-projection", "--processes", "1")


@pytest.mark.usefixtures("own_processes")
async def test_json_for_scripts(database: Any, shell: Any) -> None:
    async with sealed_story(database):
        report = json.loads(await shell("verify", "--json", "--processes", "1"))
        assert (report["consistent"], report["sound"], report["trusted_by"], report["faults"]) == (
            True,
            False,
            None,
            [],
        )
        assert report["unchecked"] == {}
        await attack(database, "UPDATE statesvc.stream SET version = 9 WHERE number = '1Z0001'")
        report = json.loads(await shell("verify", "--json", "--processes", "1", exit_code=1))
        assert report["faults"][0]["table"] == "stream"


@pytest.mark.usefixtures("own_processes")
async def test_json_counts_what_could_not_be_checked(database: Any, shell: Any) -> None:
    async with sealed_story(database):
        report = json.loads(await shell("verify", "--json", "--skip-parts", "--processes", "1"))
        assert report["unchecked"][FACTS] > 0


@pytest.mark.usefixtures("own_processes")
async def test_the_key_that_one_trusts_decides(
    database: Any, shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sealed_story(database) as log:
        key = (await shell("keys", "log")).split()[-1]
        assert "sound" in await shell("verify", "--key", key, "--processes", "1")
        pinned = tmp_path / "checkpoint.keys"
        pinned.write_text(f"{key}\n")
        monkeypatch.setenv("STATESVC_SEALER_CHECKPOINT_FILE", str(tmp_path / "checkpoint"))
        assert f"Its keys are trusted by {pinned}." in await shell("verify", "--processes", "1")
        pinned.write_text("nonsense")
        assert "cannot be read" in await shell("verify", "--processes", "1", exit_code=1)
        stranger = str(NoteSigner.fresh(log.origin).verifier)
        assert "no trusted key" in await shell(
            "verify", "--key", stranger, "--processes", "1", exit_code=1
        )


@pytest.mark.usefixtures("own_processes")
async def test_wrong_use_is_told(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        await shell("verify", "--key", "nonsense")
    assert "cannot be read" in await shell(
        "verify", "--checkpoint", str(tmp_path / "none"), exit_code=2
    )
    assert "at least 1" in await shell("verify", "--processes", "0", exit_code=2)
    monkeypatch.delenv("STATESVC_MASTER_KEY")
    assert "--skip-parts" in await shell("verify", exit_code=1)
    assert "consistent" in await shell("verify", "--skip-parts", "--processes", "1")


@pytest.mark.usefixtures("own_processes")
async def test_the_log_s_key_is_rotated_and_retired(database: Any, shell: Any) -> None:
    assert "no key yet" in await shell("keys", "log", exit_code=1)
    async with sealed_story(database) as log:
        old = (await shell("keys", "log")).splitlines()[1].split()[0]
        new = (await shell("keys", "rotate-log", "--why", "a year has passed")).strip()
        assert "no checkpoint covers" in await shell("keys", "retire-log", old, exit_code=1)
        await log.seal()
        await shell("keys", "retire-log", old)
        shown = await shell("keys", "log")
        assert new in shown
        assert "consistent" in await shell("verify", "--processes", "1")
