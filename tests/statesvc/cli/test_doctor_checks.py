"""Findings of doctor about the sealed log, the server, the database and the spool."""

import base64
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from psycopg import AsyncConnection

from events.parsing.zones import IANA_RELEASE
from statesvc.cli.doctor import spool_check
from statesvc.cli.doctor.checks import check_service, check_zones
from statesvc.cli.doctor.log_checks import check_sealed_log, check_tombstones
from statesvc.cli.doctor.server_checks import (
    check_checkpoints,
    check_housekeeping,
    check_server,
    check_version,
)
from statesvc.cli.doctor.spool_check import check_spool
from statesvc.health.finding import Finding, Urgency
from statesvc.log.timestamp import Stamp
from statesvc.log.timestamp_store import store_stamp
from statesvc.settings.service_settings import SpoolSettings, load_settings
from statesvc.spool import nats_spool
from tests.world.brokers import Nats
from tests.world.database import Database
from tests.world.log_builder import LogBuilder
from tests.world.ports import free_port
from tests.world.postgres import Server, drop_database
from tests.world.shell import Shell, use


async def told(log: LogBuilder) -> list[Finding]:
    return [finding async for finding in check_sealed_log(log.connection, load_settings())]


@pytest.fixture
def log(event_log: LogBuilder, database: Any, monkeypatch: pytest.MonkeyPatch) -> LogBuilder:
    """Make a log whose heads are kept in a file too."""
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_SEALER_CHECKPOINT_FILE", "/var/lib/statesvc/checkpoint")
    return event_log


async def test_a_log_that_is_sealed_is_well(log: LogBuilder) -> None:
    assert [finding.urgency for finding in await told(log)] == [Urgency.OK]
    await log.act()
    await log.seal()
    (finding,) = await told(log)
    assert (finding.urgency, finding.text[:9]) == (Urgency.OK, "1 entries")


async def test_entries_that_nobody_seals_are_told(database: Any, log: LogBuilder) -> None:
    await log.act()
    await database.clock.advance(300)
    found = [finding async for finding in check_service(log.connection)]
    assert any("has waited 5 min" in finding.text for finding in found)


async def test_a_head_that_is_kept_in_the_database_alone_is_told(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STATESVC_SEALER_CHECKPOINT_FILE")
    assert "STATESVC_SEALER_CHECKPOINT_FILE is not set" in (await told(log))[-1].text


async def test_a_key_under_another_master_key_is_told(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.act()
    await log.seal()
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(32)).decode())
    assert "signing key cannot be used" in (await told(log))[-1].text


async def test_a_shelf_elsewhere_will_do(log: LogBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATESVC_SEALER_CHECKPOINT_FILE")
    monkeypatch.setenv("STATESVC_CHECKPOINT_PUBLISH", "/mnt/elsewhere")
    assert [finding.urgency for finding in await told(log)] == [Urgency.OK]


@pytest.mark.usefixtures("log")
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
    database: Any, log: LogBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_CHECKPOINT_STAMP_URL", "https://tsa.example/")
    monkeypatch.setenv("STATESVC_CHECKPOINT_STAMP_CERT", "/etc/tsa.pem")
    stamp = Stamp(stamped_at=datetime.now(UTC), authority="CN=Stamps & Sons", nonce=None)
    await log.act()
    head = await log.seal()
    assert [(finding.urgency, finding.text[:26]) for finding in await told(log)][1] == (
        Urgency.HUMAN,
        "the last stamp came never:",
    )
    await store_stamp(log.connection, head.tree_size, stamp, b"token")
    assert (await told(log))[1].urgency is Urgency.OK
    await log.act()
    await log.seal()
    assert "of the first 1 entries" in (await told(log))[1].text
    await database.clock.advance(4 * 3600)
    assert "4.0 h ago" in (await told(log))[1].text


@pytest.mark.parametrize(
    ("version", "name", "urgency", "said"),
    [
        (150010, "15.10", Urgency.NOW, "too old"),
        (160004, "16.4", Urgency.HUMAN, "transaction_timeout"),
        (170000, "17.0", Urgency.OK, "PostgreSQL 17.0"),
        (180004, "18.4", Urgency.OK, "PostgreSQL 18.4"),
        (190000, "19.0", Urgency.OK, "PostgreSQL 19.0"),
        (190000, "19beta1", Urgency.HUMAN, "19beta1 is no release"),
    ],
)
def test_a_server_is_judged_by_its_version(
    version: int, name: str, urgency: Urgency, said: str
) -> None:
    finding = check_version(version, name)
    assert (finding.urgency, said in finding.text) == (urgency, True)


GIB: Final = 1024**3


@pytest.mark.parametrize(
    ("changes", "urgency", "said"),
    [
        ({}, Urgency.OK, []),
        (
            {"buffers_bytes": GIB // 8, "wal_bytes": GIB, "writer_delay_ms": 200},
            Urgency.HUMAN,
            [
                "shared_buffers is 128 MB",
                "max_wal_size is 1024 MB",
                "wal_writer_delay is 200 ms",
            ],
        ),
        ({"vacuums": False}, Urgency.NOW, ["autovacuum is off"]),
    ],
)
def test_a_server_that_does_not_keep_house_beside_webhooks_is_told_why(
    changes: dict[str, Any], urgency: Urgency, said: list[str]
) -> None:
    well = {"buffers_bytes": GIB, "wal_bytes": 2 * GIB, "writer_delay_ms": 10, "vacuums": True}
    found = check_housekeeping(**{**well, **changes})
    assert [(each.urgency, each.text.split(":")[0]) for each in found] == [
        (urgency, text) for text in said
    ]


def test_a_large_database_with_frequent_checkpoints_writes_whole_pages_too_often() -> None:
    size, timeout = check_checkpoints(
        size_bytes=40 * GIB, wal_bytes=2 * GIB, checkpoint_seconds=300
    )
    assert size.urgency is timeout.urgency is Urgency.HUMAN
    assert "max_wal_size is 2048 MB with a database of 40 GB" in size.text
    assert "checkpoint_timeout is 300 s" in timeout.text
    assert (
        list(check_checkpoints(size_bytes=40 * GIB, wal_bytes=16 * GIB, checkpoint_seconds=1800))
        == []
    )
    assert list(check_checkpoints(size_bytes=GIB, wal_bytes=2 * GIB, checkpoint_seconds=300)) == []


async def test_a_worker_with_another_release_is_a_warning_until_it_is_gone(
    service: AsyncConnection[None], owner: AsyncConnection[None]
) -> None:
    await owner.execute(
        "INSERT INTO statesvc.zone_release (zones, first_at, last_at) VALUES ('2025b', now(),"
        " now())"
    )
    await owner.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at,"
        " last_seen_at, zones) VALUES ('w', 'worker', 'h', 1, '0', statesvc.clock(),"
        " statesvc.clock(), '2025b')"
    )
    (found,) = [finding async for finding in check_zones(service)]
    assert found.urgency is Urgency.HUMAN
    assert f"by release 2025b of the IANA time zones, this command by {IANA_RELEASE}" in found.text
    await owner.execute("DELETE FROM statesvc.worker")
    (found,) = [finding async for finding in check_zones(service)]
    assert found.urgency is Urgency.OK
    assert "earlier: 2025b from" in found.text


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
async def test_a_database_of_another_encoding_is_refused(
    server: Server, shell: Shell, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server.superuser_dsn, autocommit=True) as admin:
        admin.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE"
            " template0 OWNER statesvc_owner"
        )
    try:
        use(Database.of(server.on(name)), monkeypatch)
        for command in ("migrate", "doctor"):
            said = await shell(command, exit_code=1)
            assert f"has the encoding {encoding}, and statesvc needs UTF8" in said
            assert "Traceback" not in said
    finally:
        drop_database(server, name)


async def test_a_clock_that_leapt_by_months_is_named(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await owner.execute("UPDATE statesvc.test_clock SET shift = '100 days'")
    for command in ("doctor", "status"):
        assert "s ahead of this machine's" in await here(command, exit_code=1)


async def test_entries_that_wait_for_their_time_are_named(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await owner.execute(
        "INSERT INTO statesvc.unsealed (batch_id, recorded_from) VALUES (1, statesvc.clock() +"
        " interval '1 hour')"
    )
    said = await here("status", exit_code=1)
    assert "feed, stream and proofs wait" in said
    assert "the database's clock was ahead then" in said


async def test_a_role_that_sees_only_its_own_sessions_is_named(database: Database) -> None:
    async def about_sessions(dsn: str) -> list[Urgency]:
        async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
            return [
                finding.urgency
                async for finding in check_server(connection)
                if finding.about == "sessions"
            ]

    assert await about_sessions(database.service_dsn) == []
    assert await about_sessions(database.auditor_dsn) == [Urgency.HUMAN]


async def found(url: str | None, **settings: float) -> list[tuple[Urgency, str]]:
    findings = await check_spool(SpoolSettings.model_validate({"url": url, **settings}))
    return [(finding.urgency, finding.text) for finding in findings]


async def test_without_a_spool_there_is_nothing_to_say() -> None:
    assert await found(None) == []


async def test_a_folder_is_written_and_synced_and_left_as_it_was(tmp_path: Path) -> None:
    ((urgency, text),) = await found(f"file://{tmp_path}/spool", bytes_max=1)
    assert urgency is Urgency.OK
    assert "lost with its disk" in text
    assert [*(tmp_path / "spool").iterdir()] == []


async def test_a_folder_that_cannot_be_written_or_synced_takes_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    ((urgency, text),) = await found(f"file://{tmp_path}/file")
    assert (urgency, "takes no message" in text) == (Urgency.NOW, True)

    def fail(_: int) -> None:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(os, "fdatasync", fail)
    ((urgency, text),) = await found(f"file://{tmp_path}/spool")
    assert (urgency, "Input/output error" in text) == (Urgency.NOW, True)


async def test_too_little_space_and_a_slow_sync_are_weaknesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((urgency, text),) = await found(f"file://{tmp_path}", bytes_max=10**18)
    assert (urgency, "STATESVC_SPOOL_BYTES_MAX" in text) == (Urgency.HUMAN, True)
    monkeypatch.setattr(spool_check, "SYNC_SECONDS_MAX", 0.0)
    ((urgency, text),) = await found(f"file://{tmp_path}", bytes_max=1)
    assert (urgency, "an ACK waits for it" in text) == (Urgency.HUMAN, True)


async def test_servers_that_do_not_answer_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    # one that refuses is asked again until then
    monkeypatch.setattr(nats_spool, "_ANSWER_SECONDS", 0.2)
    ((urgency, text),) = await found(f"nats://127.0.0.1:{free_port()}/SPOOL")
    assert (urgency, "no server of SPOOL answers" in text) == (Urgency.NOW, True)


@pytest.mark.usefixtures("own_processes")
async def test_a_stream_is_judged_by_its_replicas_its_memory_and_what_it_drops(
    tmp_path: Path,
) -> None:
    server = Nats(tmp_path / "nats")
    await server.start()
    try:
        assert await found(f"{server.address}/NONE") == [
            (Urgency.OK, "its servers answer; ingress makes the stream at its start")
        ]
        await server.add_stream("SPOOL", ["SPOOL.kept"], max_age=60, duplicate_window=30)
        findings = await found(f"{server.address}/SPOOL")
    finally:
        await server.kill()
    assert [urgency for urgency, _ in findings] == [
        Urgency.NOW,
        Urgency.HUMAN,
        Urgency.HUMAN,
        Urgency.OK,
    ]
    flaw, replicas, memory, sync = (text for _, text in findings)
    assert "drops messages" in flaw
    assert "1 replicas" in replicas
    assert "for 30 s" in memory
    assert "sync_interval: always" in sync
