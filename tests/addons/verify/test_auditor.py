"""The auditor's role: verifies the whole log, reads no key, writes nothing; doctor says when
it has more than that.
"""

import asyncio
import json
from typing import Any

import psycopg
import pytest
import rfc8785
from psycopg import AsyncConnection

from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from statesvc.cli import main
from statesvc.cli.doctor.log_checks import check_database_roles
from statesvc.database.log_guard import TRIGGERS, install_guard
from statesvc.database.migrator import migrate
from statesvc.settings.service_settings import Settings, load_settings
from tests.world.attack import attack, sealed_story

SECRETS = (
    "SELECT sealed_key FROM statesvc.stream",
    "SELECT sealed_key FROM statesvc.service_key",
    "SELECT sealed_seed FROM statesvc.signing_key",
    "SELECT sealed_secrets FROM statesvc.subscription",
    "SELECT key_hash FROM statesvc.api_key",
    "SELECT sealed FROM statesvc.body",
    "SELECT FROM statesvc.inbox",
    "SELECT sealed_key FROM statesvc.message",
    "SELECT FROM statesvc.dead_letter",
)
WRITES = (
    (
        "INSERT INTO statesvc.batch (recorded_from, recorded_to, entries, leaf_hashes, writer)"
        " VALUES (now(), now(), 1, sha256('x'), 'w')"
    ),
    "UPDATE statesvc.stream SET version = 9",
    "DELETE FROM statesvc.unsealed",
    "TRUNCATE statesvc.event",
    "CREATE TABLE statesvc.mine (x int)",
    "SELECT nextval('statesvc.batch_id_seq')",
)


@pytest.fixture
def settings(database: Any, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DATABASE_URL", database.service_dsn)
    return load_settings()


async def _findings(database: Any, settings: Settings, about: str) -> list[tuple[str, str]]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connection:
        return [
            (each.urgency.value, each.text)
            async for each in check_database_roles(connection, settings)
            if each.about == about
        ]


@pytest.mark.usefixtures("own_processes")
async def test_verify_runs_whole_as_the_auditor_and_finds_what_was_changed(
    database: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STATESVC_MASTER_KEY", raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    monkeypatch.setenv("STATESVC_AUDITOR_URL", database.auditor_dsn)
    async with sealed_story(database):
        assert await asyncio.to_thread(main, ["verify", "--processes", "2"]) == 0
        said = capsys.readouterr()
        assert "The log is consistent with itself" in said.out
        assert "may not read their keys" in said.err
        await attack(database, "UPDATE statesvc.transition SET to_status = 'lost'")
        await attack(database, "UPDATE statesvc.stream SET version = 9 WHERE number = '1Z0001'")
        assert await asyncio.to_thread(main, ["verify", "--processes", "1"]) == 1
        said = capsys.readouterr()
        assert "transition" in said.out
        assert "says version 9" in said.out


async def test_the_auditor_reads_no_secret_and_writes_nothing(database: Any) -> None:
    for statement in (*SECRETS, *WRITES):
        async with await AsyncConnection.connect(database.auditor_dsn, autocommit=True) as auditor:
            # whoever holds the role can undo its default
            await auditor.execute("SET default_transaction_read_only = off")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await auditor.execute(statement.encode())


async def test_doctor_says_what_the_auditor_has_too_much_and_migrate_takes_it_away(
    database: Any, settings: Settings
) -> None:
    assert await _findings(database, settings, "auditor") == [
        ("ok", "statesvc_auditor reads the log and no key, and writes nothing")
    ]
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute("GRANT SELECT (sealed_key) ON statesvc.stream TO statesvc_auditor")
        await owner.execute("GRANT UPDATE (to_status) ON statesvc.transition TO statesvc_auditor")
        await owner.execute("GRANT SELECT ON statesvc.body TO PUBLIC")
    ((severity, text),) = await _findings(database, settings, "auditor")
    assert severity == "now"
    assert all(
        word in text
        for word in ("statesvc.stream.sealed_key", "transition (update)", "statesvc.body.sealed")
    )
    async with await AsyncConnection.connect(database.owner_dsn, autocommit=True) as owner:
        await owner.execute("REVOKE SELECT ON statesvc.body FROM PUBLIC")
    await migrate(database.owner_dsn, database.service_dsn)
    assert [severity for severity, _ in await _findings(database, settings, "auditor")] == ["ok"]


async def test_doctor_says_whether_the_guard_stands(database: Any, settings: Settings) -> None:
    ((severity, text),) = await _findings(database, settings, "log guard")
    assert (severity, "statesvc migrate --guard" in text) == ("human", True)
    await install_guard(database.superuser_dsn)
    assert [severity for severity, _ in await _findings(database, settings, "log guard")] == ["ok"]
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as superuser:
        await superuser.execute(f"ALTER EVENT TRIGGER {TRIGGERS[1]} DISABLE".encode())
    ((severity, text),) = await _findings(database, settings, "log guard")
    assert (severity, TRIGGERS[1] in text) == ("now", True)


def test_the_sql_of_the_roles_is_printed_for_psql_without_any_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["migrate", "--roles"]) == 0
    printed = capsys.readouterr()
    assert "CREATE ROLE %I LOGIN" in printed.out
    assert "STATESVC_OWNER_PASSWORD" in printed.err


async def test_the_guards_entries_are_canonical(database: Any) -> None:
    await install_guard(database.superuser_dsn)
    async with await AsyncConnection.connect(database.owner_dsn) as owner:
        await owner.execute("""SELECT statesvc.announce_log_ddl(E'"Zoë"\\n\\x01\\x7f/ \\\\')""")
        await owner.execute("ALTER TABLE statesvc.event_key SET (autovacuum_enabled = true)")
        await owner.commit()
    report = Verification(
        VerificationRequest(access=LogAccess(dsn=database.auditor_dsn)), lambda _done, _total: None
    ).run()
    assert (report.entries, [str(fault) for fault in report.faults]) == (1, [])
    async with await AsyncConnection.connect(database.owner_dsn) as owner:
        (canonical,) = await (
            await owner.execute("SELECT canonical FROM statesvc.action")
        ).fetchone() or (b"",)
    assert rfc8785.dumps(json.loads(canonical)) == canonical
