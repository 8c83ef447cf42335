"""What doctor says about the sealed log."""

import base64
from typing import Any

import pytest

from statesvc.cli.finding import Finding, Severity
from statesvc.cli.log_examination import examine_log
from statesvc.settings import load_settings
from tests.statesvc.log.story import Story, story


async def told(log: Story) -> list[Finding]:
    return [finding async for finding in examine_log(log.connection, load_settings())]


@pytest.fixture(autouse=True)
def settings(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", database.service_dsn)
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(range(32))).decode())
    monkeypatch.setenv("STATESVC_SEALER_CHECKPOINT_FILE", "/var/lib/statesvc/checkpoint")


async def test_a_log_that_is_sealed_is_well(database: Any) -> None:
    async with story(database) as log:
        assert [finding.severity for finding in await told(log)] == [Severity.GOOD]
        await log.act()
        await log.seal()
        (finding,) = await told(log)
        assert (finding.severity, finding.text[:9]) == (Severity.GOOD, "1 entries")


async def test_entries_that_nobody_seals_are_told(database: Any) -> None:
    async with story(database) as log:
        await log.act()
        assert [finding.severity for finding in await told(log)] == [Severity.GOOD]
        await database.clock.advance(300)
        (finding,) = await told(log)
        assert finding.severity is Severity.BAD
        assert "is a sealer running" in finding.text


async def test_a_head_that_is_kept_in_the_database_alone_is_told(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATESVC_SEALER_CHECKPOINT_FILE")
    async with story(database) as log:
        assert "STATESVC_SEALER_CHECKPOINT_FILE is not set" in (await told(log))[-1].text


async def test_a_key_under_another_master_key_is_told(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with story(database) as log:
        await log.act()
        await log.seal()
        monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(32)).decode())
        assert "signing key cannot be used" in (await told(log))[-1].text
