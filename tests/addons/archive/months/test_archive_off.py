"""The add-on archive is off on a database of a release that has archives: an answer is
complete or there is none.
"""

import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection

from statesvc.addons.demo.movable_clock import MOVABLE_CLOCK
from statesvc.api.service_status import read_status
from statesvc.database.migrator import migrate
from statesvc.files.archive_errors import AddOnMissingError
from statesvc.log.history import History
from statesvc.roles.supervisor.child_plan import require_retention
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.service_settings import read_settings
from statesvc.shipments.rebuild.rebuild import Rebuild
from tests.migrations.kept_release import KeptRelease, kept_releases
from tests.world.attack import places, verify
from tests.world.database import Database
from tests.world.log_builder import log_builder
from tests.world.worker_harness import ACME, WorkerHarness, push_body

PATH = "/v1/shipments/ups/1Z0001"
AS_OF = {"params": {"as_of": "2040-01-01T00:00:00Z"}}
HOLD = {"carrier_id": "ups", "tracking_number": "1Z0001", "why": "a case"}
REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", PATH, AS_OF),
    ("GET", f"{PATH}/history", {}),
    ("GET", f"{PATH}/history", AS_OF),
    ("GET", f"{PATH}/audit", {}),
    ("GET", "/v1/feed", {}),
    ("POST", f"{PATH}/erase", {"json": {"why": "asked to"}}),
    ("POST", "/v1/legal-holds", {"json": HOLD}),
]
pytestmark = pytest.mark.parametrize(
    "kept", kept_releases(), ids=lambda kept: kept.folder.name, scope="module"
)


@pytest.fixture
async def database(
    kept: KeptRelease, bare_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Database:
    """Restore the archived database of the release, upgrade it, and switch the add-on off."""
    archive = tmp_path / "archive"
    with zipfile.ZipFile(kept.archived) as archived:
        archived.extractall(archive)
    dump = archive / "database.sql"
    async with await AsyncConnection.connect(bare_database.owner_dsn, autocommit=True) as owner:
        await owner.execute(dump.read_bytes())
        dump.unlink()
        await migrate(bare_database.owner_dsn, bare_database.service_dsn)
        await owner.execute(MOVABLE_CLOCK.encode())
    await bare_database.clock.advance(0)
    monkeypatch.setenv("STATESVC_ADDONS", "console")
    return bare_database


async def test_what_reaches_an_archived_month_is_refused_and_never_shorter(api: Any) -> None:
    headers = {"Authorization": f"Bearer {await api.key('admin read audit')}"}
    for method, path, more in REFUSED:
        async with api.client.request(method, path, headers=headers, **more) as response:
            problem = await response.json()
        assert (response.status, problem.get("code")) == (503, "addon_missing"), (path, problem)
        assert "the add-on archive, which STATESVC_ADDONS leaves out" in problem["detail"]
    async with api.client.get("/v1/shipments/ups/1Z0007/history", headers=headers) as response:
        assert (response.status, len((await response.json())["items"])) == (200, 6)


@pytest.mark.usefixtures("own_processes")
async def test_the_log_goes_on_and_what_needs_the_archive_waits_for_the_add_on(
    harness: WorkerHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with log_builder(harness.database) as log:
        await log.parcel("1Z0009")
        await log.conflict("1Z0009")
        await log.act()
        await log.seal()
    harness.context = replace(harness.context, carriers={"ups": replace(ACME, carrier_id="ups")})
    (late,) = await harness.push(
        push_body({"number": "1Z0001", "status": "in_transit", "code": "LATE"}), carrier_id="ups"
    )
    await harness.process(await harness.claim(), lease_seconds=0.3)
    assert await harness.rows("SELECT message_id FROM statesvc.inbox") == [(late,)]
    task = Rebuild(
        owner_dsn=harness.database.owner_dsn,
        actor="cli:ops",
        processes=1,
        progress=lambda *_: None,
        archive=History(tmp_path / "archive"),
    )
    with pytest.raises(AddOnMissingError, match="add-on archive"):
        await task.rebuild()
    monkeypatch.delenv("STATESVC_ADDONS")
    assert places(verify(harness.database, archive=tmp_path / "archive")) == []


async def test_status_and_up_tell_that_the_archives_need_the_add_on(harness: WorkerHarness) -> None:
    found = await read_status(harness.connection)
    (text,) = [one.text for one in found.troubles if one.about == "add-ons"]
    assert "1 months of the log and 19 days of bodies are archived" in text
    with pytest.raises(SettingError, match=r"KEEP_MONTHS is 25.* needs the add-on archive"):
        await require_retention(harness.connection, read_settings())
