from typing import Any

from psycopg import AsyncConnection

from tests.world.database import Database
from tests.world.shell import Shell

STREAM = (
    "INSERT INTO statesvc.stream (shipment_id, carrier_id, number, discriminator, version,"
    " head_hash, recorded_at, first_recorded_at, sealed_key) VALUES (gen_random_uuid(), 'ups',"
    " '1Z99', '', 0, sha256(''), statesvc.clock(), statesvc.clock(), '')"
)


async def test_a_hold_is_placed_listed_and_released(database: Database, here: Shell) -> None:
    place = ("legal-hold", "place", "ups")
    told = await here(*place, "1Z99", "--why", "case 7", exit_code=1)
    assert "ever named this tracking number" in told
    assert "must say why" in await here(*place, "1Z99", "--why", " ", exit_code=2)
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        for stream in (STREAM, STREAM.replace("1Z99", "1Z98")):
            await connection.execute(stream)
    assert "ups 1Z99: held" in await here(*place, "1z-99", "--why", "case 7")
    assert "is under a legal hold already" in await here(
        *place, "1Z99", "--why", "case 8", exit_code=1
    )
    hold: Any
    (hold,) = await here.json("legal-hold", "list")
    assert (hold["carrier_id"], hold["number"], hold["why"], hold["placed_by"][:4]) == (
        "ups",
        "1Z99",
        "case 7",
        "cli:",
    )
    await here(*place, "1Z98", "--why", "case 7")
    # a list that does not end says how to go on
    told = await here("legal-hold", "list", "--limit", "1")
    assert ("1Z98" in told, "1Z99" in told) == (True, False)
    cursor = told.partition("... there are more: --cursor ")[2].split()[0]
    assert "1z-99" in await here("legal-hold", "list", "--cursor", cursor)
    for number in ("1Z98", "1Z99"):
        assert f"ups {number}: released" in await here(
            "legal-hold", "release", "ups", number, "--why", "settled"
        )
    assert "No legal hold is in force." in await here("legal-hold", "list")
    assert "settled" in await here("legal-hold", "list", "--all")
