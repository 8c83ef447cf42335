import base64
import json
from pathlib import Path
from uuid import uuid4
from zipfile import ZipFile

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.errors import InsufficientPrivilege

from events.merkle.checkpoint import NoteSigner
from statesvc.cli import main
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.log.signing_keys import read_keys
from tests.world.database import Database
from tests.world.log_builder import LogBuilder
from tests.world.shell import MASTER_KEY, Shell, use

pytestmark = pytest.mark.slow


async def test_another_fleet_is_given_a_role_an_address_and_the_inbox_key(
    database: Database, here: Shell
) -> None:
    role = f"fleet_{uuid4().hex[:12]}"
    out, statements = await here.printed("keys", "inbox", "--role", role)
    given = {
        name: value.strip("'")
        for name, _, value in (line[7:].partition("=") for line in out.splitlines())
    }
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as superuser:
        await superuser.execute(statements[statements.index("CREATE ROLE") :].encode())
        try:
            dsn = make_conninfo(
                host=given["PGHOST"],
                port=given["PGPORT"],
                dbname=given["PGDATABASE"],
                user=given["PGUSER"],
                password=given["PGPASSWORD"],
            )
            async with await AsyncConnection.connect(dsn, autocommit=True) as fleet:
                await fleet.execute(
                    "SELECT * FROM statesvc.claim(p_worker => 'w', p_limit => 1, p_lease => '30 s')"
                )
                with pytest.raises(InsufficientPrivilege):
                    await fleet.execute("SELECT FROM statesvc.event")
        finally:
            await superuser.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
    async with await AsyncConnection.connect(database.service_dsn) as connection:
        keyring = await load_keyring(connection, parse_master_keys(MASTER_KEY))
    assert base64.b64decode(given["STATESVC_INBOX_KEY"]) == keyring.inbox.key
    await here("keys", "inbox", "--role", "statesvc_service", exit_code=2)


async def test_the_list_of_carriers_needs_no_database(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert {carrier["weight"] for carrier in await shell.json("carriers")} == {None}


async def test_migrations_are_checked_then_applied(
    bare_database: Database, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(bare_database, monkeypatch)
    assert "pending  0001_foundation" in await shell("migrate", "--check", exit_code=1)
    assert "run `statesvc migrate`" in await shell("keys", "list", exit_code=1)
    assert "applied  0001_foundation" in await shell("migrate")
    assert "up to date" in await shell("migrate", "--check")
    async with await AsyncConnection.connect(bare_database.owner_dsn, autocommit=True) as owner:
        await owner.execute(
            "UPDATE statesvc.schema_functions SET sha256 = 'of an older text' WHERE file ="
            " 'claim_protocol'"
        )
    assert (await shell("migrate", "--check", exit_code=1)).startswith(
        "pending  functions/claim_protocol\n"
    )
    assert "applied  functions/claim_protocol" in await shell("migrate")
    # the tests' server runs without fsync, which is a finding of its own
    found = {(each["about"], each["severity"]) for each in await shell.json("doctor", exit_code=1)}
    assert {
        ("migrations", "ok"),
        ("log", "ok"),
        ("clock", "ok"),
        ("partitions", "ok"),
        ("wake-ups", "ok"),
        ("durability", "fail"),
    } <= found


async def test_doctor_sees_a_clock_that_was_redefined(here: Shell) -> None:
    assert "clock() was redefined" in await here("doctor", exit_code=1)


async def test_doctor_sees_one_url_that_owns_the_tables(
    bare_database: Database, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(bare_database, monkeypatch)
    monkeypatch.setenv("DATABASE_URL", bare_database.owner_dsn)
    await shell("migrate")
    assert "logs in as the owner of the tables" in await shell("doctor", exit_code=1)


async def test_doctor_sees_a_missing_and_a_foreign_master_key(
    bare_database: Database, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(bare_database, monkeypatch)
    await shell("migrate")
    monkeypatch.delenv("STATESVC_MASTER_KEY")
    assert "STATESVC_MASTER_KEY is not set" in await shell("doctor", exit_code=1)
    async with await AsyncConnection.connect(
        bare_database.service_dsn, autocommit=True
    ) as connection:
        await load_keyring(connection, parse_master_keys(MASTER_KEY))
    monkeypatch.setenv("STATESVC_MASTER_KEY", MASTER_KEY)
    assert "opens the keys of this database" in await shell("doctor", exit_code=1)
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(31) + b"x").decode())
    assert "it is another installation's" in await shell("doctor", exit_code=1)


async def test_doctor_sees_unsigned_carriers_and_misspelt_settings(
    bare_database: Database, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(bare_database, monkeypatch)
    await shell("migrate")
    monkeypatch.setenv("STATESVC_ALLOW_UNSIGNED_WEBHOOKS", "fedex")
    monkeypatch.setenv("STATESVC_LEASE", "30")
    told = await shell("doctor", exit_code=1)
    assert "anyone may push as fedex" in told
    assert "unknown setting STATESVC_LEASE" in told


async def test_doctor_says_when_the_database_is_away(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody:pa55word@127.0.0.1:1/none")
    monkeypatch.setenv("STATESVC_MASTER_KEY", MASTER_KEY)
    told = await shell("doctor", exit_code=1)
    assert "does not answer" in told
    assert "pa55word" not in told


def test_every_setting_is_listed_without_its_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATESVC_MASTER_KEY", MASTER_KEY)
    assert main(["doctor", "--settings"]) == 0
    printed = capsys.readouterr().out
    assert "STATESVC_MASTER_KEY  (set)" in printed
    assert MASTER_KEY not in printed


@pytest.mark.usefixtures("own_processes")
async def test_a_projection_is_compared_rebuilt_and_put_back(here: Shell) -> None:
    assert await here.json("rebuild", "shipment", "--compare") == {"events": 0, "drift": []}
    assert "swapped in" in await here("rebuild", "shipment", "--processes", "1")
    assert "no drift" in await here("rebuild", "shipment", "--compare")
    await here("rebuild", "shipment", "--rollback")
    await here("rebuild", "shipment", "--finish")
    assert "nothing to go back to" in await here("rebuild", "shipment", "--rollback", exit_code=1)


@pytest.mark.usefixtures("own_processes")
async def test_evidence_is_written_and_verified_without_a_database(
    here: Shell,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    event_log: LogBuilder,
) -> None:
    await event_log.parcel("1ZEVIDENCE")
    await event_log.seal()
    keys = "\n".join(str(key.verifier) for key in await read_keys(event_log.connection))
    monkeypatch.chdir(tmp_path)
    case, own = tmp_path / "case.json", ("evidence", "ups", "1z-evidence")
    for name in ("e.json", "e.html", "e.pdf"):
        assert "entries of the log" in await here(*own, "--out", name)
    case.write_text('{"case": "7", "ship_to": {"city": "Springfield"}}')
    said = await here(*own, "--case", str(case), "--as-of", "2999-01-01T00:00:00Z")
    assert "evidence-ups-1z-evidence.zip: " in said
    assert "UPS reported parcel 1ZEVIDENCE as delivered on 1 March 2026 at 08:04 UTC" in said
    case.write_text('{"case": "Erika Mustermann"}')
    refused = await here(*own, "--case", str(case), exit_code=2)
    assert ("case" in refused, "Mustermann" in refused) == (True, False)

    monkeypatch.setenv("DATABASE_URL", "postgresql://nowhere.invalid/none")
    (tmp_path / "log.pub").write_text(keys)
    files = _read_zip("evidence-ups-1z-evidence.zip")
    assert json.loads(files["evidence.json"])["stated"]["statement"]["case"] == "7"
    other = files["evidence.json"].replace(b"Springfield", b"Shelbyville", 1)
    for changed, code, told in (
        (files, 0, "evidence holds"),
        (files | {"evidence.pdf": b"another"}, 1, "evidence.pdf is not the one that was sealed"),
        (files | {"evidence.json": other}, 1, "DOES NOT HOLD"),
    ):
        _write_zip("changed.zip", changed)
        said = await here("verify", "--bundle", "changed.zip", "--key", "log.pub", exit_code=code)
        assert told in said
    held = await here.json("verify", "--bundle", "e.json", "--key", keys.split()[0])
    assert held == {"sound": True, "flaws": [], "remarks": []}
    assert "needs --key" in await here("verify", "--bundle", "e.json", exit_code=2)


def _read_zip(path: str) -> dict[str, bytes]:
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write_zip(path: str, files: dict[str, bytes]) -> None:
    with ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not JSON",
        b"[]",
        b'{"format": "other/1"}',
        b"%PDF-1.7",
        b"PK\x03\x04cut short",
        bytes(100),
        "zip",
    ],
    ids=str,
)
async def test_what_is_no_evidence_file_is_called_so(
    shell: Shell, tmp_path: Path, content: bytes | str
) -> None:
    file, key = tmp_path / "file", str(NoteSigner.fresh("log.example").verifier)
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        _write_zip(str(file), {"other.json": b"{}"})
    said = await shell("verify", "--bundle", str(file), "--key", key, exit_code=2)
    assert f"{file} is not an evidence file" in said
    assert "DOES NOT HOLD" not in said
