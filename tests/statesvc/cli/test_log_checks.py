"""Findings of doctor about the sealed log."""

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from statesvc.cli.doctor.checks import check_service
from statesvc.cli.doctor.log_checks import check_sealed_log, check_tombstones
from statesvc.health.finding import Finding, Urgency
from statesvc.log.timestamp import Stamp
from statesvc.log.timestamp_store import store_stamp
from statesvc.settings.service_settings import load_settings
from tests.world.log_builder import LogBuilder
from tests.world.shell import use


async def told(log: LogBuilder) -> list[Finding]:
    return [finding async for finding in check_sealed_log(log.connection, load_settings())]


@pytest.fixture(autouse=True)
def settings(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_SEALER_CHECKPOINT_FILE", "/var/lib/statesvc/checkpoint")


async def test_a_log_that_is_sealed_is_well(event_log: LogBuilder) -> None:
    assert [finding.urgency for finding in await told(event_log)] == [Urgency.OK]
    await event_log.act()
    await event_log.seal()
    (finding,) = await told(event_log)
    assert (finding.urgency, finding.text[:9]) == (Urgency.OK, "1 entries")


async def test_entries_that_nobody_seals_are_told(database: Any, event_log: LogBuilder) -> None:
    await event_log.act()
    await database.clock.advance(300)
    found = [finding async for finding in check_service(event_log.connection)]
    assert any("has waited 5 min" in finding.text for finding in found)


async def test_a_head_that_is_kept_in_the_database_alone_is_told(
    event_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATESVC_SEALER_CHECKPOINT_FILE")
    assert "STATESVC_SEALER_CHECKPOINT_FILE is not set" in (await told(event_log))[-1].text


async def test_a_key_under_another_master_key_is_told(
    event_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await event_log.act()
    await event_log.seal()
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(32)).decode())
    assert "signing key cannot be used" in (await told(event_log))[-1].text


async def test_a_shelf_elsewhere_will_do(
    event_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATESVC_SEALER_CHECKPOINT_FILE")
    monkeypatch.setenv("STATESVC_CHECKPOINT_PUBLISH", "/mnt/elsewhere")
    assert [finding.urgency for finding in await told(event_log)] == [Urgency.OK]


async def test_it_says_whether_erasures_survive_a_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = await check_tombstones(load_settings())
    assert (alone.urgency, "on this machine alone" in alone.text) == (Urgency.HUMAN, True)
    monkeypatch.setenv("STATESVC_CHECKPOINT_PUBLISH", str(tmp_path))
    assert (await check_tombstones(load_settings())).urgency is Urgency.OK
    (tmp_path / "tombstones").write_text("no folder")
    assert (await check_tombstones(load_settings())).urgency is Urgency.NOW
    monkeypatch.delenv("STATESVC_CHECKPOINT_PUBLISH")
    monkeypatch.delenv("STATESVC_SEALER_CHECKPOINT_FILE")
    nowhere = await check_tombstones(load_settings())
    assert (nowhere.urgency, "no place outside" in nowhere.text) == (Urgency.HUMAN, True)


async def test_stamps_that_do_not_come_are_told(
    database: Any, event_log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_CHECKPOINT_STAMP_URL", "https://tsa.example/")
    monkeypatch.setenv("STATESVC_CHECKPOINT_STAMP_CERT", "/etc/tsa.pem")
    stamp = Stamp(stamped_at=datetime.now(UTC), authority="CN=Stamps & Sons", nonce=None)
    await event_log.act()
    head = await event_log.seal()
    assert [(finding.urgency, finding.text[:26]) for finding in await told(event_log)][1] == (
        Urgency.HUMAN,
        "the last stamp came never:",
    )
    await store_stamp(event_log.connection, head.tree_size, stamp, b"token")
    assert (await told(event_log))[1].urgency is Urgency.OK
    await event_log.act()
    await event_log.seal()
    assert "of the first 1 entries" in (await told(event_log))[1].text
    await database.clock.advance(4 * 3600)
    assert "4.0 h ago" in (await told(event_log))[1].text
