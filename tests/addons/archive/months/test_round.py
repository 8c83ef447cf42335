"""A month leaves the database only after its file was written, compared and announced, wherever an
archiver dies on the way.
"""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.vocabulary import Status
from statesvc.bodies.legal_holds import place_hold
from statesvc.log.cursor import LogCursor
from statesvc.log.feed import read_entries
from tests.addons.archive.months import dying
from tests.world.attack import places
from tests.world.forked import fork
from tests.world.log_archiver import KINDS, Archiver, shipment
from tests.world.log_builder import scan

STEPS = [
    ("_mark", "before"),
    ("_mark", "after"),
    ("entries", "before"),
    ("publish", "before"),
    ("publish", "after"),
    ("note_written", "before"),
    ("note_written", "after"),
    ("note_verified", "before"),
    ("note_verified", "after"),
    ("give_notice", "before"),
    ("give_notice", "after"),
    ("read_back", "before"),
    ("read_back", "after"),
    ("drop_month", "before"),
    ("drop_month", "after"),
]


async def _feed(archiver: Archiver) -> list[Any]:
    entries = await read_entries(
        archiver.connection, after=LogCursor(1, -1), limit=1000, archive=archiver.archive
    )
    return [(entry.log_index, entry.kind, entry.canonical) for entry in entries.entries]


@pytest.mark.usefixtures("two_months")
async def test_an_archiver_may_be_killed_anywhere(
    archiver: Archiver, archive_place: str, tmp_path: Path
) -> None:
    await killed_everywhere(archiver, archive_place, tmp_path)


async def killed_everywhere(archiver: Archiver, place: str, tmp_path: Path) -> None:
    before, counts = await _feed(archiver), await archiver.counts()
    given = (archiver.database.service_dsn, place)
    for step, when in STEPS:
        child = await fork(
            dying.__name__,
            (*given, step, when),
            environment=os.environ,
            output=tmp_path / "printed",
        )
        assert await child.wait() == -signal.SIGKILL, (
            step,
            when,
            (tmp_path / "printed").read_text(),
        )
        if (step, when) != ("drop_month", "after"):
            assert await archiver.counts() == counts, (step, when)
        assert await _feed(archiver) == before, (step, when)
        if step == "give_notice":
            await archiver.notice(60)
    outcome = await archiver.run_pass()
    assert outcome.failed == []
    assert [name.split(".", 1)[1] for name in archiver.files()] == [
        "checkpoint",
        "parquet",
        "shipments.parquet",
    ]
    assert await _feed(archiver) == before
    assert places(archiver.verify()) == []
    (month,) = (await archiver.ledger()).values()
    assert month.dropped_at is not None


async def test_a_month_leaves_only_after_its_notice(archiver: Archiver) -> None:
    async def not_yet(_seconds: float) -> None:
        assert 0 < _seconds <= 60

    await archiver.two_months()
    counts = await archiver.counts()
    outcome = await archiver.run_pass(wait=not_yet)
    assert (len(outcome.leaving), outcome.archived) == (1, [])
    assert await archiver.counts() == counts
    # whoever asks meanwhile finds it now and afterwards
    await archiver.archive.restore_shipments(archiver.connection, [shipment("1Z0002")])
    await archiver.notice(60)
    assert len((await archiver.run_pass()).archived) == 1
    rows = await archiver.log.rows(
        f"SELECT version FROM statesvc.event WHERE shipment_id = '{shipment('1Z0002')}' ORDER BY"
        " version"
    )
    assert [version for (version,) in rows] == [1, 2, 3, 4, 5, 6]
    assert (
        await archiver.log.rows(
            f"SELECT FROM statesvc.event WHERE shipment_id = '{shipment('1Z0001')}'"
        )
        == []
    )


@pytest.mark.usefixtures("two_months")
async def test_who_is_held_active_or_waited_for_stays(archiver: Archiver) -> None:
    await place_hold(
        archiver.connection,
        carrier_id="ups",
        tracking_number="1Z0002",
        actor="test",
        why="a claim",
    )
    before = await _feed(archiver)
    await archiver.archived()
    assert await archiver.residents() == {shipment("1Z0002"): "held", shipment("1Z0003"): "active"}
    rows = await archiver.log.rows(
        "SELECT DISTINCT shipment_id FROM statesvc.event WHERE recorded_at < '2027-01-01' ORDER"
        " BY 1"
    )
    assert {shipment_id for (shipment_id,) in rows} >= {shipment("1Z0002"), shipment("1Z0003")}
    assert shipment("1Z0001") not in {shipment_id for (shipment_id,) in rows}
    assert (
        len(
            await archiver.log.rows(
                f"SELECT FROM statesvc.conflict WHERE shipment_id = '{shipment('1Z0002')}'"
            )
        )
        == 1
    )
    assert await _feed(archiver) == before
    assert places(archiver.verify()) == []


async def test_nothing_leaves_that_no_head_covers(archiver: Archiver) -> None:
    await archiver.log.parcel("1Z0001")
    await archiver.pass_days(70)
    outcome = await archiver.run_pass()
    assert len(outcome.waiting) == 1
    assert archiver.files() == []
    assert await archiver.ledger() == {}


async def test_a_file_that_suffered_before_the_drop_is_written_anew(archiver: Archiver) -> None:
    async def suffer(_seconds: float) -> None:
        """Return at once: the notice is not over."""

    await archiver.two_months()
    assert len((await archiver.run_pass(wait=suffer)).leaving) == 1
    entries = next(
        path
        for path in archiver.folder.iterdir()
        if path.name.count(".") == 1 and path.suffix == ".parquet"
    )
    content = bytearray(entries.read_bytes())
    content[100] ^= 1
    entries.chmod(0o600)
    entries.write_bytes(content)
    await archiver.notice(60)
    counts = await archiver.counts()
    assert len((await archiver.run_pass()).failed) == 1
    assert await archiver.counts() == counts
    (month,) = (await archiver.ledger()).values()
    assert month.failure is not None
    assert "SHA-256" in month.failure
    await archiver.archived()
    assert places(archiver.verify()) == []


@pytest.mark.usefixtures("two_months")
async def test_a_month_that_changed_after_its_file_stays(archiver: Archiver) -> None:
    await archiver.run_pass(wait=archiver.archiving.wait, drop_tries=0)
    (month,) = (await archiver.ledger()).values()
    assert month.leaving_at is not None
    await archiver.as_owner("UPDATE statesvc.log_archive SET actions = actions + 1")
    outcome = await archiver.run_pass()
    assert len(outcome.failed) == 1
    assert set(await archiver.counts()) == set(KINDS)


@pytest.mark.usefixtures("two_months")
@pytest.mark.parametrize(
    "lock",
    [
        "SELECT pg_advisory_xact_lock_shared(hashtextextended('statesvc.log_months', 0))",
        "LOCK TABLE statesvc.event IN ACCESS SHARE MODE",
    ],
    ids=["the whole log", "a moment"],
)
async def test_a_reader_is_waited_for(archiver: Archiver, lock: str) -> None:
    async with await AsyncConnection.connect(archiver.database.service_dsn) as reader:
        await reader.execute(lock.encode())
        assert len((await archiver.run_pass()).busy) == 1
    await archiver.archived()


@pytest.mark.usefixtures("two_months")
async def test_appends_go_on_into_what_is_left(archiver: Archiver) -> None:
    await archiver.archived()
    await archiver.log.append(scan("1Z0020", 1, Status.PICKED_UP))
    await archiver.log.seal()
    with pytest.raises(Exception, match="append-only"):
        await archiver.as_owner("TRUNCATE statesvc.event_202611")
    assert places(archiver.verify()) == []
