"""`statesvc backup check`. With archiving and a base backup: tests/acceptance/test_restore.py."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from statesvc.addons.backups.backup_checks import (
    ReplicationSlot,
    WalArchiving,
    check_archiving,
    check_base_backups,
    check_provider,
    check_slots,
)
from statesvc.addons.backups.backup_command import (
    BaseBackupError,
    in_folder,
    in_stanza,
    stanza_times,
)
from statesvc.health.finding import Finding, Urgency
from statesvc.sealer.leadership import Publication
from tests.world.database import Database
from tests.world.log_builder import log_builder
from tests.world.shell import Shell, use

WELL = WalArchiving(
    is_on=True,
    archived="000000010000000000000003",
    archived_seconds=20.0,
    failed="000000010000000000000001",
    failed_seconds=9000.0,
    waiting_bytes=5_000_000,
    file_bytes=16_777_216,
    timeout_seconds=60,
    is_streamed=False,
)
NOW = datetime(2026, 11, 23, tzinfo=UTC)
DAYS = 35


def severities(findings: list[Finding]) -> list[Urgency]:
    return [finding.urgency for finding in findings]


@pytest.mark.parametrize(
    ("changes", "found", "said"),
    [
        ({}, [Urgency.OK], "archived up to"),
        ({"is_on": False}, [Urgency.NOW], "everything since the last base backup"),
        ({"is_on": False, "is_streamed": True}, [Urgency.HUMAN], "pg_receivewal"),
        (
            {"failed": "000000010000000000000004", "failed_seconds": 3.0},
            [Urgency.NOW],
            "000000010000000000000004",
        ),
        (
            {"archived": None, "archived_seconds": None, "waiting_bytes": None},
            [Urgency.NOW],
            "fails",
        ),
        ({"archived_seconds": 4000.0, "waiting_bytes": 90_000_000}, [Urgency.NOW], "90 MB"),
        # nothing waits
        ({"archived_seconds": 4000.0, "waiting_bytes": 100}, [Urgency.OK], "4,000 s ago"),
        # a file may stay open for ever
        ({"timeout_seconds": 0}, [Urgency.OK, Urgency.HUMAN], "archived up to"),
    ],
)
def test_archiving_goes_well_though_it_failed_before_or_its_fault_is_named(
    changes: dict[str, Any], found: list[Urgency], said: str
) -> None:
    findings = list(check_archiving(replace(WELL, **changes)))
    assert (severities(findings), said in findings[0].text) == (found, True)


def test_what_a_provider_restores_is_taken_as_stated() -> None:
    well, longer = check_provider(35, backup_days=35), check_provider(36, backup_days=35)
    assert (well.urgency, "last 35 days, as STATESVC_BACKUP_PROVIDER_DAYS states" in well.text) == (
        Urgency.OK,
        True,
    )
    assert (longer.urgency, "for longer than erasures say" in longer.text) == (Urgency.HUMAN, True)


def test_slots_without_a_reader_and_those_left_behind_are_named() -> None:
    well = ReplicationSlot(name="standby", behind_bytes=10, status="reserved", is_active=True)
    assert severities(list(check_slots([well]))) == [Urgency.OK]
    idle, lost = check_slots(
        [
            well,
            ReplicationSlot("old", 3e9, "extended", is_active=False),
            ReplicationSlot("gone", 0, "lost", is_active=False),
        ]
    )
    assert (idle.urgency, "old has no reader and holds 3,000 MB" in idle.text) == (
        Urgency.HUMAN,
        True,
    )
    assert (lost.urgency, "gone" in lost.text) == (Urgency.NOW, True)


@pytest.mark.parametrize(
    ("ages", "found"),
    [
        ([], [Urgency.NOW]),
        ([3, 1], [Urgency.OK]),
        ([20, 9], [Urgency.HUMAN]),
        ([40, 1], [Urgency.OK, Urgency.HUMAN]),
    ],
)
def test_base_backups_are_neither_too_old_nor_retained_too_long(
    ages: list[int], found: list[Urgency]
) -> None:
    ended = [NOW - timedelta(days=age, minutes=1) for age in ages]
    assert severities(list(check_base_backups(ended, now=NOW, backup_days=DAYS))) == found


def test_what_pg_basebackup_left_is_found_one_or_many(tmp_path: Path) -> None:
    for name, at in (("monday", 1000), ("sunday", 900)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "backup_manifest").write_text("{}")
        os.utime(tmp_path / name / "backup_manifest", (at, at))
    (tmp_path / "unfinished").mkdir()
    assert [each.timestamp() for each in in_folder(tmp_path)] == [900, 1000]
    assert [each.timestamp() for each in in_folder(tmp_path / "monday")] == [1000]
    with pytest.raises(BaseBackupError, match="cannot be read"):
        in_folder(tmp_path / "missing")


def test_what_pgbackrest_says_is_understood() -> None:
    answer = [
        {
            "name": "main",
            "status": {"code": 0, "message": "ok"},
            "backup": [
                {"error": False, "timestamp": {"start": 90, "stop": 100}},
                {"error": True, "timestamp": {"start": 190, "stop": 200}},
            ],
        },
        {"name": "other", "status": {"code": 2, "message": "no valid backups"}, "backup": []},
    ]
    assert [each.timestamp() for each in stanza_times(json.dumps(answer).encode(), "main")] == [100]
    with pytest.raises(BaseBackupError, match="no valid backups"):
        stanza_times(json.dumps(answer).encode(), "other")
    with pytest.raises(BaseBackupError, match="is not there"):
        stanza_times(json.dumps(answer).encode(), "missing")
    with pytest.raises(BaseBackupError, match="not understood"):
        stanza_times(b'[{"name": "main"}]', "main")
    with pytest.raises(BaseBackupError, match="not installed"):
        in_stanza("main", program="no-such-program")


async def test_a_server_as_it_comes_would_lose_all_since_the_base_backup(
    database: Database, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_SEALER_CHECKPOINT_FILE", str(tmp_path / "checkpoint"))
    async with log_builder(
        database, Publication(file=tmp_path / "checkpoint", origin="log.example/tests")
    ) as log:
        await log.act()
        await log.seal()
    found = {
        (each["about"], each["severity"]): each["text"]
        for each in await shell.json("backup", "check", exit_code=1)
    }
    assert "since the last base backup" in found["write-ahead log", "fail"]
    assert "has 1 of 1 entries" in found["published heads", "ok"]
    assert "STATESVC_CHECKPOINT_PUBLISH" in found["published heads", "warn"]
    assert "--stanza" in found["base backup", "warn"]
    assert ("tombstones", "warn") in found
    assert "does not hold it" in found["master key", "fail"]
