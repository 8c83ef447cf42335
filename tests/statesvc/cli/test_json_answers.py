"""What acts says for scripts what it did, as what only looks does."""

import base64
from pathlib import Path

import pytest
from psycopg import AsyncConnection

from tests.world.database import Database
from tests.world.shell import Shell, use


@pytest.fixture(autouse=True)
def _environment(database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(range(32))).decode())
    monkeypatch.setenv("STATESVC_OWNER_URL", database.owner_dsn)
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(tmp_path / "archive"))
    (tmp_path / "archive").mkdir()


async def test_each_act_answers_with_a_document(shell: Shell) -> None:
    quota = await shell.json("carriers", "quota", "ups", "--weight", "2", "--why", "test")
    assert (quota["carrier_id"], quota["weight"], quota["in_flight_max"]) == ("ups", 2.0, None)
    rollout = await shell.json(
        "rollout",
        "set",
        "ups",
        "--stable",
        "old@1",
        "--candidate",
        "1",
        "--percent",
        "5",
        "--why",
        "test",
    )
    assert (rollout["carrier_id"], rollout["percent"], rollout["stable"]) == ("ups", 5, "old@1")
    migrated = await shell.json("migrate", "--check")
    assert (migrated["applied"], migrated["pending"]) == ([], [])
    archived = await shell.json("archive", "run")
    assert (archived["archived"], archived["bodies"], archived["refused"]) == ([], 0, None)
    assert await shell.json("archive", "verify") == {"files": 0, "months": 0, "faults": {}}
    assert (await shell.json("archive", "log", "--hot-months", "1", "--no-wait"))["archived"] == []


async def test_status_names_the_database_once(database: Database, shell: Shell) -> None:
    async with await AsyncConnection.connect(database.service_dsn) as connection:
        ((name,),) = await (await connection.execute("SELECT current_database()")).fetchall()
    # nothing runs here, which needs a human
    out, err = await shell.printed("status", exit_code=1)
    assert (out.count(name), err) == (1, "")
    _, err = await shell.printed("queue")
    assert name in err
