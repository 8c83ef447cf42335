"""The command `verify`: what it prints, whom it trusts, and the auditor, who reads no key and writes
nothing.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
import rfc8785
from psycopg import AsyncConnection

from events.merkle.checkpoint import NoteSigner, read_checkpoint
from statesvc.addons.verify.event_ids import FACTS
from statesvc.addons.verify.verify_log import Verification, VerificationRequest
from statesvc.addons.verify.worker_pool import LogAccess
from statesvc.cli import main
from statesvc.cli.doctor.log_checks import check_database_roles
from statesvc.database.log_guard import TRIGGERS, install_guard
from statesvc.database.migrator import migrate
from statesvc.log.signing_keys import read_keys
from statesvc.settings.service_settings import Settings, load_settings
from tests.world.attack import attack, sealed_story, verify
from tests.world.database import Database
from tests.world.log_builder import LogBuilder
from tests.world.shell import Shell
from tests.world.witness import OtherWitness


@pytest.mark.usefixtures("own_processes")
async def test_a_sound_log_and_a_changed_one(
    database: Any, sealed_log: LogBuilder, here: Shell, tmp_path: Path
) -> None:
    head = tmp_path / "head"
    head.write_text(
        (await sealed_log.rows("SELECT note FROM statesvc.checkpoint ORDER BY tree_size LIMIT 1"))[
            0
        ][0]
    )
    said = await here("verify", "--checkpoint", str(head), "--processes", "1")
    assert said.startswith("The log is sound: ")
    assert f"begins with the log that {head} is the head of" in said
    said = await here("verify", "--processes", "1")
    assert said.startswith("The log is consistent with itself: ")
    assert "sound" not in said
    assert "shows only with a key from outside this database: --key" in said
    assert "shows only against a head" in said
    await attack(
        database,
        "UPDATE statesvc.event SET kind = 'info' WHERE version = 2 AND status = 'picked_up'",
    )
    said = await here("verify", "--processes", "1", exit_code=1)
    assert "kind: is not what the entry's canonical bytes say" in said
    assert "THE LOG WAS CHANGED" in said


@pytest.mark.usefixtures("own_processes")
async def test_a_head_is_held_against_the_witnesses_that_one_demands(
    sealed_log: LogBuilder, here: Shell, tmp_path: Path
) -> None:
    witness, head = OtherWitness(), tmp_path / "head"
    ((note,),) = await sealed_log.rows(
        "SELECT note FROM statesvc.checkpoint ORDER BY tree_size LIMIT 1"
    )
    head.write_text(note + witness.line(note.partition("\n\n")[0] + "\n", 1_800_000_000))
    demanded = ("verify", "--processes", "1", "--checkpoint", str(head), "--witness")
    assert (await here(*demanded, witness.key)).startswith("The log is sound: ")
    said = await here(*demanded, OtherWitness().key, exit_code=1)
    assert f"{head} is not cosigned by {witness.name}: no known key has signed" in said
    said = await here("verify", "--witness", witness.key, exit_code=2)
    assert "--witness needs --checkpoint or --bundle" in said


@pytest.mark.usefixtures("own_processes")
async def test_a_state_that_was_changed_is_found(database: Any, here: Shell) -> None:
    async with sealed_story(database):
        await here("verify", "--processes", "1")
        await attack(
            database, "UPDATE statesvc.shipment SET status = 'lost' WHERE number = '1Z0001'"
        )
        said = await here("verify", "--processes", "1", exit_code=3)
        assert "status: is not what the shipment's events add up to" in said
        assert "The log is consistent with itself" in said
        assert "The projection differs from the log: 1 shipments" in said
        assert "statesvc rebuild shipment" in said
        assert "THE LOG WAS CHANGED" not in said
        report = await here.json("verify", "--processes", "1", exit_code=3)
        assert (
            report["consistent"],
            report["faults"],
            len(report["projection"]),
            report["shipments_drifted"],
        ) == (True, [], 1, 1)
        await attack(
            database,
            "UPDATE statesvc.event SET kind = 'info' WHERE version = 2 AND status = 'picked_up'",
        )
        assert "THE LOG WAS CHANGED" in await here("verify", "--processes", "1", exit_code=1)
        await attack(
            database,
            "UPDATE statesvc.event SET kind = 'scan' WHERE version = 2 AND status = 'picked_up'",
        )
        await here("verify", "--skip-projection", "--processes", "1")


@pytest.mark.usefixtures("own_processes")
async def test_json_has_verdict_faults_and_what_was_not_checked(database: Any, here: Shell) -> None:
    async with sealed_story(database):
        report = await here.json("verify", "--processes", "1")
        assert (report["sound"], report["trusted_by"], report["unchecked"]) == (False, None, {})
        report = await here.json("verify", "--skip-parts", "--processes", "1")
        assert report["unchecked"][FACTS] > 0


@pytest.mark.usefixtures("own_processes")
async def test_the_key_that_one_trusts_decides(
    sealed_log: LogBuilder, here: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (await here("keys", "log")).split()[-1]
    assert "sound" in await here("verify", "--key", key, "--processes", "1")
    pinned = tmp_path / "checkpoint.keys"
    pinned.write_text(f"{key}\n")
    monkeypatch.setenv("STATESVC_SEALER_CHECKPOINT_FILE", str(tmp_path / "checkpoint"))
    assert f"Its keys are trusted by {pinned}." in await here("verify", "--processes", "1")
    pinned.write_text("nonsense")
    assert "cannot be read" in await here("verify", "--processes", "1", exit_code=1)
    stranger = str(NoteSigner.fresh(sealed_log.origin).verifier)
    assert "no trusted key" in await here(
        "verify", "--key", stranger, "--processes", "1", exit_code=1
    )


@pytest.mark.usefixtures("own_processes")
async def test_wrong_use_is_told(
    here: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        await here("verify", "--key", "nonsense")
    assert "cannot be read" in await here(
        "verify", "--checkpoint", str(tmp_path / "none"), exit_code=2
    )
    assert "at least 1" in await here("verify", "--processes", "0", exit_code=2)
    monkeypatch.delenv("STATESVC_MASTER_KEY")
    assert "--skip-parts" in await here("verify", exit_code=1)
    assert "consistent" in await here("verify", "--skip-parts", "--processes", "1")


@pytest.mark.usefixtures("own_processes")
async def test_the_log_s_key_is_rotated_and_retired(database: Database, here: Shell) -> None:
    assert "no key yet" in await here("keys", "log", exit_code=1)
    async with sealed_story(database) as log:
        old = (await here("keys", "log")).splitlines()[1].split()[0]
        new = (await here("keys", "rotate-log", "--why", "a year has passed")).strip()
        assert "no checkpoint covers" in await here("keys", "retire-log", old, exit_code=1)
        await log.seal()
        await here("keys", "retire-log", old)
    shown = await here("keys", "log")
    assert new in shown
    assert "consistent" in await here("verify", "--processes", "1")


async def test_a_log_signed_again_by_a_forged_key_is_never_sound(
    database: Database, sealed_log: LogBuilder
) -> None:
    # a superuser puts a key of theirs into the table and signs every head with it, whatever
    # the entries say by then
    (genuine,) = [key.verifier for key in await read_keys(sealed_log.connection)]
    heads = await sealed_log.rows(
        "SELECT tree_size, note, created_at FROM statesvc.checkpoint ORDER BY tree_size"
    )
    forger = NoteSigner.fresh(sealed_log.origin)
    key = forger.verifier
    await attack(
        database,
        f"UPDATE statesvc.signing_key SET key_id = '\\x{key.key_id.hex()}', public_key ="
        f" '\\x{key.public_key.hex()}'",
        *(
            "UPDATE statesvc.checkpoint SET note ="
            f" '{read_checkpoint(note).signed([forger], at=created_at)}' WHERE tree_size ="
            f" {size}"
            for size, note, created_at in heads
        ),
    )
    own = verify(database)
    assert (own.faults, own.consistent, own.sound, own.trusted_by) == ([], True, False, None)
    by_key = verify(database, keys=[genuine])
    assert {fault.table for fault in by_key.faults} == {"checkpoint"}
    by_head = verify(database, note=heads[-1][1])
    assert not by_head.consistent


async def test_a_head_that_was_kept_vouches_for_what_it_covers_and_its_signer_for_the_rest(
    database: Database, sealed_log: LogBuilder
) -> None:
    (first,) = await sealed_log.rows(
        "SELECT note FROM statesvc.checkpoint ORDER BY tree_size LIMIT 1"
    )
    (genuine,) = [key.verifier for key in await read_keys(sealed_log.connection)]
    by_head, by_key = (
        verify(database, note=first[0], note_name="head"),
        verify(database, keys=[genuine]),
    )
    assert (by_head.sound, by_head.trusted_by) == (True, "head")
    assert (by_key.sound, by_key.trusted_by) == (True, "--key")


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
