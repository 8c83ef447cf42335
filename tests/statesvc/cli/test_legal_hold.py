from typing import Any

import pytest
from psycopg import AsyncConnection

from tests.world.database import Database
from tests.world.shell import Shell, use

STREAM = (
    "INSERT INTO statesvc.stream (shipment_id, carrier_id, number, discriminator, version,"
    " head_hash, recorded_at, first_recorded_at, sealed_key) VALUES (gen_random_uuid(), 'ups',"
    " '1Z99', '', 0, sha256(''), statesvc.clock(), statesvc.clock(), '')"
)


async def test_a_hold_is_placed_listed_and_released(
    database: Database, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(database, monkeypatch)
    assert "ever named this tracking number" in await shell(
        "legal-hold", "place", "ups", "1Z99", "--why", "case 7", exit_code=1
    )
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        await connection.execute(STREAM)
    assert "ups 1Z99: held" in await shell("legal-hold", "place", "ups", "1z-99", "--why", "case 7")
    assert "is under a legal hold already" in await shell(
        "legal-hold", "place", "ups", "1Z99", "--why", "case 8", exit_code=1
    )
    hold: Any
    (hold,) = await shell.json("legal-hold", "list")
    assert (hold["carrier_id"], hold["number"], hold["why"], hold["placed_by"][:4]) == (
        "ups",
        "1Z99",
        "case 7",
        "cli:",
    )
    assert "ups 1Z99: released" in await shell(
        "legal-hold", "release", "ups", "1Z99", "--why", "settled"
    )
    assert "No legal hold is in force." in await shell("legal-hold", "list")
    assert "settled" in await shell("legal-hold", "list", "--all")
    async with await AsyncConnection.connect(database.service_dsn) as connection:
        actions = await (
            await connection.execute("SELECT verb, target FROM statesvc.action ORDER BY batch_id")
        ).fetchall()
    assert actions == [
        ("place_legal_hold", "shipment ups 1Z99"),
        ("release_legal_hold", "shipment ups 1Z99"),
    ]


async def test_wrong_use_is_told(
    database: Database, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(database, monkeypatch)
    assert "no such carrier" in await shell(
        "legal-hold", "place", "nobody", "1", "--why", "x", exit_code=2
    )
    assert "must say why" in await shell(
        "legal-hold", "place", "ups", "1", "--why", " ", exit_code=2
    )


async def test_a_list_that_does_not_end_says_how_to_go_on(
    database: Database, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(database, monkeypatch)
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        await connection.execute(STREAM)
        await connection.execute(STREAM.replace("1Z99", "1Z98"))
    for number in ("1Z98", "1Z99"):
        await shell("legal-hold", "place", "ups", number, "--why", "case 7")
    told = await shell("legal-hold", "list", "--limit", "1")
    assert ("1Z99" in told, "1Z98" in told) == (True, False)
    assert "1Z98" in await shell(
        "legal-hold",
        "list",
        "--cursor",
        told.partition("... there are more: --cursor ")[2].split()[0],
    )
