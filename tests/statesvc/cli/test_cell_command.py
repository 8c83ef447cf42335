"""`statesvc cell`: the directory from the command line, and what is found in the cells' databases."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.http.keys.key_store import Scope, create_key, list_keys
from statesvc.subscriptions.key_revocation import revoke_key
from tests.world import postgres
from tests.world.database import Database
from tests.world.shell import Shell


@pytest.fixture
async def south(server: postgres.Server) -> AsyncIterator[Database]:
    name = postgres.create_database(server, postgres.TEMPLATE)
    try:
        yield Database.of(server.on(name))
    finally:
        postgres.drop_database(server, name)


@pytest.fixture
async def cells(
    database: Database,
    south: Database,
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Make a directory of two cells whose databases are here, and whose APIs are not."""
    file = tmp_path / "cells.toml"
    monkeypatch.setenv("STATESVC_CELLS_FILE", str(file))
    monkeypatch.setenv("NORTH_DATABASE_URL", database.owner_dsn)
    monkeypatch.setenv("SOUTH_DATABASE_URL", south.owner_dsn)
    await shell(
        "cell", "add", "north", "--url", "http://127.0.0.1:1", "--database", "NORTH_DATABASE_URL"
    )
    await shell(
        "cell", "add", "south", "--url", "http://127.0.0.1:2", "--database", "SOUTH_DATABASE_URL"
    )
    await shell("cell", "assign", "ups", "south")
    return file


@pytest.mark.usefixtures("cells")
async def test_the_directory_is_made_changed_and_listed(shell: Shell) -> None:
    listed = await shell.json("cell", "list")
    assert (listed["epoch"], listed["default"], listed["carriers"]) == (
        3,
        "north",
        {"ups": "south"},
    )
    assert '"ups" south;' in await shell("cell", "proxy", "nginx")


@pytest.mark.usefixtures("cells")
async def test_wrong_use_is_refused_with_what_to_do(shell: Shell) -> None:
    assert "no such carrier_id" in await shell("cell", "assign", "nobody", "north", exit_code=2)
    assert "there are: north, south" in await shell("cell", "assign", "ups", "west", exit_code=1)
    assert "already" in await shell(
        "cell", "add", "south", "--url", "http://127.0.0.1:4", exit_code=1
    )
    assert "same address" in await shell(
        "cell", "add", "west", "--url", "http://127.0.0.1:2", exit_code=1
    )
    assert (await shell.json("cell", "list"))["epoch"] == 3


@pytest.mark.usefixtures("cells")
async def test_check_finds_a_carrier_in_the_wrong_cell_and_logs_that_are_copies(
    shell: Shell, database: Database, south: Database
) -> None:
    for at in (database, south):
        async with await AsyncConnection.connect(at.superuser_dsn, autocommit=True) as connection:
            await connection.execute(
                "INSERT INTO statesvc.signing_key (key_id, origin, public_key, sealed_seed, created_at)"
                " VALUES ('\\x00000000', 'one.example/log', decode(repeat('00', 32), 'hex'), '\\x00', statesvc.clock())"
            )
            await connection.execute(
                "INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id, sealed_key)"
                " VALUES (gen_random_uuid(), statesvc.clock(), statesvc.clock(), 1, 'ups', '')"
            )
    said = await shell("cell", "check", exit_code=1)
    assert (
        "north: it has data of carriers that the directory maps to another cell: ups (south)"
        in said
    )
    assert "south: its log has the same origin as the one of north, one.example/log" in said
    assert "south: it holds no carrier of another cell" in said
    assert "north: http://127.0.0.1:1 does not answer" in said


@pytest.mark.usefixtures("cells")
async def test_keys_become_the_same_in_all_cells_and_a_revoked_one_ends_everywhere(
    shell: Shell, database: Database, south: Database
) -> None:
    async with (
        await AsyncConnection.connect(database.service_dsn, autocommit=True) as north,
        await AsyncConnection.connect(south.service_dsn, autocommit=True) as other,
    ):
        first, _ = await create_key(north, name="first", scopes=[Scope.READ], created_by="me")
        second, _ = await create_key(
            other, name="second", scopes=[Scope.AUDIT], created_by="me", owner="team"
        )
        await shell("cell", "keys")
        assert await _good(north) == await _good(other) == {first, second}
        await revoke_key(north, key_id=second, revoked_by="me")
        assert "1 API keys are good in other cells and not here" in await shell(
            "cell", "check", exit_code=1
        )
        await shell("cell", "keys")
        assert await _good(north) == await _good(other) == {first}
        recorded = await (
            await other.execute(
                "SELECT verb FROM statesvc.action WHERE target = %s", (f"key:{first}",)
            )
        ).fetchall()
        assert recorded == [("key.copy",)]


@pytest.mark.usefixtures("cells")
async def test_status_and_check_look_into_each_cell_and_name_the_one_that_is_away(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await shell.json("cell", "status", exit_code=1)
    assert (found["needs_human"], found["cells"].keys()) == (True, {"north", "south"}), (
        "no process runs"
    )
    assert found["cells"]["north"]["queue"]["dead_letters"] == 0
    monkeypatch.setenv("NORTH_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    said = await shell("cell", "status", exit_code=1)
    assert said.splitlines()[1].split()[:2] == ["north", "away"], "the worst first"
    assert "its database does not answer as it should (OperationalError)" in said
    said = await shell("cell", "check", exit_code=1)
    assert "north: its database does not answer as it should" in said
    assert "south: dead letters: none" in said


@pytest.mark.usefixtures("cells")
async def test_check_names_subscriptions_that_a_cell_lacks(
    shell: Shell, database: Database
) -> None:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as connection:
        await connection.execute(
            "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url, sealed_secrets)"
            " VALUES ('00000000-0000-4000-8000-000000000001', statesvc.clock(), 'me', 'me', 'https://there.invalid', '{}')"
        )
    said = await shell("cell", "check", exit_code=1)
    assert (
        "south: 1 subscriptions of other cells are not here (00000000-0000-4000-8000-000000000001)"
        in said
    )
    assert "north: 1 subscriptions" not in said


async def _good(connection: AsyncConnection[Any]) -> set[str]:
    return {key.key_id for key in await list_keys(connection) if key.revoked_at is None}


@pytest.mark.usefixtures("cells")
async def test_a_move_to_what_is_no_standby_is_refused_before_anything_is_fenced(
    shell: Shell, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIMARY_URL", database.superuser_dsn)
    servers = ("--primary", "PRIMARY_URL", "--standby", "PRIMARY_URL")
    assert "follows nobody: make it a standby" in await shell(
        "cell", "move", "south", *servers, exit_code=1
    )
    assert "there is no cell west" in await shell("cell", "move", "west", *servers, exit_code=1)
    assert "must be http://host:port" in await shell(
        "cell", "move", "south", *servers, "--url", "https://there", exit_code=1
    )
    assert "ELSEWHERE is not set" in await shell(
        "cell", "move", "south", "--primary", "ELSEWHERE", "--standby", "PRIMARY_URL", exit_code=2
    )
    assert (await shell.json("cell", "list"))["epoch"] == 3
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as connection:
        assert await (
            await connection.execute("SHOW default_transaction_read_only")
        ).fetchone() == ("off",)
