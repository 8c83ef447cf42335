"""The command in a process of its own, as an operator and a worker run it, with the guard of the
log's tables standing.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from statesvc.addons.archive.archive_checks import check_archives
from statesvc.addons.archive.archive_jobs import LogArchiver
from statesvc.database.log_guard import install_guard
from statesvc.settings.service_settings import load_settings
from statesvc.telemetry.metrics import Telemetry
from tests.world.attack import places
from tests.world.log_archiver import Archiver, shipment
from tests.world.shell import Shell, use

ACTIONS = (
    "SELECT actor, verb, target FROM statesvc.action WHERE verb IN ('log.archive', 'log_ddl') ORDER"
    " BY batch_id"
)


@pytest.fixture(autouse=True)
def _environment(database: Any, monkeypatch: pytest.MonkeyPatch, archiver: Archiver) -> None:
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(archiver.folder))


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    telemetry = Telemetry()
    yield telemetry
    telemetry.close()


async def test_a_month_is_announced_archived_listed_and_verified(
    archiver: Archiver, shell: Shell
) -> None:
    await install_guard(archiver.database.superuser_dsn)
    await archiver.two_months()
    assert "nothing was archived yet" in await shell("archive", "log", "--list")
    assert "STATESVC_ARCHIVE_LOG_HOT_MONTHS is not set" in await shell(
        "archive", "log", exit_code=2
    )
    assert "run it again" in await shell("archive", "log", "--hot-months", "1", "--no-wait")
    assert "leaving" in await shell("archive", "log", "--list")
    await archiver.notice(60)
    assert "1 months archived" in await shell("archive", "log", "--hot-months", "1")
    (listed,) = await shell.json("archive", "log", "--list")
    assert (listed["failures"], listed["dropped_at"] is None) == (0, False)
    # what the guard saw stands in the log beside what the archiver says
    actions = await archiver.log.rows(ACTIONS)
    assert ("archiver", "log.archive", f"log {listed['month'][:7]}") in actions
    assert {actor for actor, verb, _ in actions if verb == "log_ddl"} == {
        "database role statesvc_service"
    }
    assert "1 months of the log read, 0 files missing" in await shell("archive", "verify")
    await archiver.log.seal()
    assert places(archiver.verify()) == []
    await shell("verify", "--processes", "2")
    (archiver.folder / listed["file_name"]).unlink()
    assert "it is missing" in await shell("archive", "verify", exit_code=1)
    assert listed["file_name"] in await shell("verify", "--processes", "1", exit_code=1)


async def test_doctor_says_how_far_it_came_and_what_is_missing(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_ARCHIVE_LOG_HOT_MONTHS", "1")

    async def output() -> str:
        found = check_archives(archiver.connection, load_settings())
        return "\n".join([str(finding) async for finding in found])

    assert "nothing was old enough" in await output()
    await archiver.two_months()
    # on whatever day of its month the test begins
    await archiver.pass_days(45)
    assert " months are overdue" in await output()
    assert len((await archiver.run_pass()).archived) == 2
    month = next(iter((await archiver.ledger()).values()))
    assert "2 files are there" in await output()
    (archiver.folder / str(month.file_name)).unlink()
    assert "it is missing" in await output()
    monkeypatch.delenv("STATESVC_ARCHIVE_DIR")
    assert "not set here" in await output()


async def test_doctor_says_that_the_log_stays_in_the_database_without_an_archive(
    archiver: Archiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATESVC_ARCHIVE_LOG_HOT_MONTHS", raising=False)
    findings = [f async for f in check_archives(archiver.connection, load_settings())]
    assert "the whole log stays in the database" in str(findings[-1])


async def test_a_worker_archives_by_a_process_of_its_own(
    archiver: Archiver, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_ARCHIVE_LOG_HOT_MONTHS", "1")
    job = LogArchiver(
        archiver.database.service_dsn,
        hot_months=1,
        telemetry=telemetry,
        command=(sys.executable, "-m", "statesvc", "archive", "log", "--no-wait"),
    )
    assert await job.once() is None, "nothing is due"
    await archiver.two_months()
    assert await job.once() == 0
    await archiver.notice(60)
    assert await job.once() == 0
    assert (
        await archiver.log.rows(
            f"SELECT FROM statesvc.event WHERE shipment_id = '{shipment('1Z0001')}'"
        )
        == []
    )
    assert await job.once() is None


@pytest.mark.usefixtures("two_months")
async def test_a_worker_that_stops_ends_what_it_began(
    archiver: Archiver, telemetry: Telemetry
) -> None:
    job = LogArchiver(
        archiver.database.service_dsn,
        hot_months=1,
        telemetry=telemetry,
        command=(sys.executable, "-c", "import time; time.sleep(600)"),
    )
    pass_ = asyncio.create_task(job.once())
    await asyncio.sleep(0.5)
    job.stop()
    assert await asyncio.wait_for(pass_, 10) is None


def test_no_role_has_pyarrow_in_its_memory() -> None:
    roles = ", ".join(
        f"statesvc.roles.{role}_role" for role in ("worker", "api", "notifier", "sealer")
    )
    check = f"import sys, {roles}; sys.exit('pyarrow' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", check], check=False, env=dict(os.environ)).returncode
        == 0
    )


async def test_without_pyarrow_it_says_what_to_install(
    archiver: Archiver, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name
        for name in sys.modules
        if name.startswith(("pyarrow", "statesvc.addons.archive.month_pass"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for module in ("month_files", "entry_file", "shipment_index"):
        monkeypatch.delitem(sys.modules, f"statesvc.addons.archive.{module}", raising=False)
    assert "pip install 'statesvc[archive]'" in await shell(
        "archive", "log", "--hot-months", "1", exit_code=1
    )
    assert archiver.files() == []
