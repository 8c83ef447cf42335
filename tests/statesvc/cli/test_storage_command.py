"""`statesvc storage` on a log of eight days."""

import pytest
from psycopg import AsyncConnection

from statesvc.cli.doctor.disk_check import judge
from statesvc.health.finding import Urgency
from tests.world.database import Database
from tests.world.shell import Shell, use
from tests.world.story import story


async def test_what_fills_the_disk_and_how_long_it_lasts_is_shown(
    database: Database, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(database, monkeypatch)
    async with story(database) as log:
        await log.parcel("1Z0001")
        await log.seal()
    assert "not known yet" in await shell("storage", "--free", "1GB")
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute("UPDATE statesvc.test_clock SET shift = shift + interval '1 day'")
    async with story(database) as log:
        await log.parcel("1Z0002")
        await log.seal()
    shown = await shell("storage", "--free", "1GB", "--days", "1")
    assert "last for" in shown
    assert "stays: no archive is set" in shown
    assert "say --free SIZE" in await shell("storage")
    found = await shell.json("storage", "--free", "10kB", exit_code=1)
    assert found["free_bytes"] == 10_000
    assert found["days_left"] == 0
    assert found["what_to_change"][0].startswith("STATESVC_ARCHIVE_")
    sizes = {table["name"]: table for table in found["tables"]}
    assert found["size_bytes"] == sum(table["size_bytes"] for table in sizes.values())
    assert sizes["event"]["bytes_per_day"] > 0
    assert sizes["inbox"]["leaving"] == "when it is settled"


def test_doctor_says_in_time_that_the_disk_will_be_full() -> None:
    assert judge(None) is judge(60) is None
    soon, at_once = judge(59), judge(6)
    assert soon is not None
    assert at_once is not None
    assert (soon.urgency, at_once.urgency) == (Urgency.HUMAN, Urgency.NOW)
    assert "full in 59 days" in soon.text
