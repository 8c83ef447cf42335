"""Services that hold the master key: what they wrap they unwrap, and the root key opens with it."""

import asyncio
import base64
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from pydantic import SecretStr

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from statesvc.cli import main
from statesvc.database.keyring_store import MasterKeyError, load_keyring
from statesvc.database.kms.kms import Credentials, KmsError, kms_at
from statesvc.roles.master_key import key_sources, open_master_keys
from statesvc.settings.service_settings import load_settings
from tests.world.log_builder import LogBuilder, scan
from tests.world.vault import Vault, vault

ENVIRONMENT = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
async def server(database: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Vault]:
    async with vault() as running:
        monkeypatch.setenv("DATABASE_URL", database.service_dsn)
        monkeypatch.setenv("STATESVC_OWNER_URL", database.owner_dsn)
        monkeypatch.delenv("STATESVC_MASTER_KEY", raising=False)
        monkeypatch.setenv("STATESVC_KMS_URL", running.url)
        monkeypatch.setenv("STATESVC_KMS_TOKEN", running.token)
        yield running


@pytest.fixture
async def connection(database: Any) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as connected:
        await connected.execute("SET timezone = 'UTC'")
        yield connected


async def _keyring(connection: AsyncConnection[Any], *, make: bool = False) -> Keyring:
    return await load_keyring(
        connection, await open_master_keys(load_settings(), connection, make=make)
    )


async def test_it_is_made_once_and_opens_at_the_next_start(
    server: Vault, connection: AsyncConnection[Any]
) -> None:
    first = await _keyring(connection, make=True)
    server.calls.clear()
    assert (await _keyring(connection)).digest_key == first.digest_key
    # once a start, not once a key
    assert server.calls == ["decrypt"]
    for query in (
        "SELECT wrapped FROM statesvc.root_key",
        "SELECT sealed_key FROM statesvc.service_key",
    ):
        for (value,) in await (await connection.execute(query.encode())).fetchall():
            assert first.master.current.key not in value
            assert all(version not in value for version in server.versions)


async def test_of_two_that_start_at_once_one_makes_it(server: Vault, database: Any) -> None:
    async def start() -> bytes:
        async with await AsyncConnection.connect(database.service_dsn, autocommit=True) as own:
            return (await open_master_keys(load_settings(), own, make=True)).current.key

    assert len(set(await asyncio.gather(*(start() for _ in range(5))))) == 1
    assert server.calls.count("decrypt") == 5


async def test_a_command_that_only_looks_makes_none(
    server: Vault, connection: AsyncConnection[Any]
) -> None:
    with pytest.raises(KmsError, match="no key of this database yet"):
        await open_master_keys(load_settings(), connection)
    assert server.calls == []


async def test_keys_move_from_the_environment_to_the_kms_and_back(
    server: Vault,
    connection: AsyncConnection[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def use(key: str | None) -> None:
        monkeypatch.delenv("STATESVC_MASTER_KEY", raising=False)
        if key is not None:
            monkeypatch.setenv("STATESVC_MASTER_KEY", key)

    async def rotate() -> None:
        assert await asyncio.to_thread(main, ["keys", "rotate-master"]) == 0, capsys.readouterr()

    async def opens() -> bytes:
        keyring = await _keyring(connection)
        rows = await (
            await connection.execute(
                "SELECT sealed_key, shipment_id FROM statesvc.stream", binary=True
            )
        ).fetchall()
        assert len(rows) == 2
        for sealed, shipment_id in rows:
            keyring.open_shipment_key(sealed, shipment_id)
        return keyring.digest_key

    use(f"{ENVIRONMENT},kms")
    log = LogBuilder(connection, await _keyring(connection, make=True))
    await log.append(scan("1Z0001", 1, None), scan("1Z0002", 1, None))
    digest_key = await opens()
    use(f"kms,{ENVIRONMENT}")
    await rotate()
    use(None)
    assert await opens() == digest_key
    use(f"{ENVIRONMENT},kms")
    await rotate()
    server.status = 503
    use(ENVIRONMENT)
    monkeypatch.delenv("STATESVC_KMS_URL")
    assert await opens() == digest_key


async def test_the_kms_rotates_its_key(
    server: Vault, connection: AsyncConnection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    before = await _keyring(connection, make=True)
    server.rotate()
    assert await asyncio.to_thread(main, ["keys", "rotate-master"]) == 0
    assert "newest version" in capsys.readouterr().out
    (wrapped,) = await (
        await connection.execute("SELECT wrapped FROM statesvc.root_key", binary=True)
    ).fetchone() or (b"",)
    assert wrapped.startswith(b"vault:v2:")
    # the old version may be taken away now
    server.versions[0] = bytes(32)
    assert (await _keyring(connection)).digest_key == before.digest_key


async def test_another_key_in_the_kms_opens_nothing(
    server: Vault, connection: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await _keyring(connection, make=True)
    server.versions[0] = bytes(32)
    with pytest.raises(KmsError, match="answered 400"):
        await _keyring(connection)
    monkeypatch.delenv("STATESVC_KMS_URL")
    monkeypatch.setenv("STATESVC_MASTER_KEY", ENVIRONMENT)
    with pytest.raises(SealError, match="does not hold it"):
        await _keyring(connection)


def test_the_order_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = bytes(range(32))
    monkeypatch.setenv("DATABASE_URL", "postgresql://x@y/z")
    monkeypatch.setenv("STATESVC_KMS_URL", "command:/bin/wrapper")
    for text, keys in (
        ("kms", (None,)),
        (ENVIRONMENT, (None, plain)),
        (f"{ENVIRONMENT}, kms", (plain, None)),
        (f"kms,{ENVIRONMENT}", (None, plain)),
    ):
        monkeypatch.setenv("STATESVC_MASTER_KEY", text)
        assert key_sources(load_settings()).keys == keys
    monkeypatch.delenv("STATESVC_KMS_URL")
    monkeypatch.setenv("STATESVC_MASTER_KEY", "kms")
    with pytest.raises(MasterKeyError, match="STATESVC_KMS_URL"):
        key_sources(load_settings())


async def test_doctor_looks_at_the_kms(
    server: Vault, connection: AsyncConnection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    await _keyring(connection, make=True)
    await asyncio.to_thread(main, ["doctor"])
    said = capsys.readouterr().out
    assert "held by the KMS (vault:transit/keys/statesvc)" in said
    assert "opens the keys of this database" in said
    server.rotate()
    await asyncio.to_thread(main, ["doctor"])
    assert "the KMS's key was rotated" in capsys.readouterr().out
    server.status = 403
    assert await asyncio.to_thread(main, ["doctor"]) == 1
    said = capsys.readouterr().out
    assert "answered 403" in said
    assert server.token not in said


SECRET = bytes(range(32))
PROGRAM = """#!{python}
import base64, sys
data = base64.b64decode(sys.stdin.read())
if sys.argv[1] == "unwrap" and not data.startswith(b"wrapped:"):
    sys.exit("this was never wrapped here")
print(base64.b64encode(b"wrapped:" + data[::-1] if sys.argv[1] == "wrap" else data[8:][::-1]).decode())
"""


def program(folder: Path, text: str = PROGRAM, name: str = "wrapper") -> Path:
    path = folder / name
    path.write_text(text.replace("{python}", sys.executable))
    path.chmod(0o700)
    return path


def _credentials(server: Vault) -> Credentials:
    return Credentials(token=SecretStr(server.token))


async def test_a_program_wraps_and_unwraps(tmp_path: Path) -> None:
    kms = kms_at(f"command:{program(tmp_path)}", Credentials())
    wrapped = await kms.wrap(SECRET)
    assert SECRET not in wrapped
    assert await kms.unwrap(wrapped) == SECRET
    assert (kms.name, await kms.is_outdated(wrapped)) == ("command:wrapper", False)


async def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    kms = kms_at(f"command:{program(tmp_path)}", Credentials())
    with pytest.raises(
        KmsError, match=r"could not unwrap \(exit code 1\): this was never wrapped here"
    ):
        await kms.unwrap(b"something else")
    with pytest.raises(KmsError, match="cannot be run"):
        await kms_at(f"command:{tmp_path / 'nothing'}", Credentials()).wrap(SECRET)
    talker = program(tmp_path, "#!/bin/sh\necho hello, world\n", "talker")
    with pytest.raises(KmsError, match="else than base64"):
        await kms_at(f"command:{talker}", Credentials()).wrap(SECRET)


async def test_vault_wraps_unwraps_and_rotates(server: Vault) -> None:
    kms = kms_at(server.url, _credentials(server))
    wrapped = await kms.wrap(SECRET)
    assert wrapped.startswith(b"vault:v1:")
    assert (await kms.unwrap(wrapped), await kms.is_outdated(wrapped)) == (SECRET, False)
    server.rotate()
    assert (await kms.unwrap(wrapped), await kms.is_outdated(wrapped)) == (SECRET, True)
    assert (await kms.wrap(SECRET)).startswith(b"vault:v2:")
    assert kms.name == "vault:transit/keys/statesvc"


async def test_a_token_in_a_file_may_be_replaced(server: Vault, tmp_path: Path) -> None:
    file = tmp_path / "token"
    kms = kms_at(server.url, Credentials(token_file=file))
    with pytest.raises(KmsError, match="cannot be read"):
        await kms.wrap(SECRET)
    file.write_text("another\n")
    with pytest.raises(KmsError, match="token is refused"):
        await kms.wrap(SECRET)
    file.write_text(f"{server.token}\n")
    assert await kms.unwrap(await kms.wrap(SECRET)) == SECRET


@pytest.mark.parametrize(
    ("status", "transient"),
    [(400, False), (403, False), (404, False), (429, True), (500, True), (503, True)],
)
async def test_what_vault_refuses_is_said(server: Vault, status: int, *, transient: bool) -> None:
    server.status = status
    with pytest.raises(KmsError, match=f"answered {status}") as caught:
        await kms_at(server.url, _credentials(server)).wrap(SECRET)
    assert caught.value.transient == transient
    assert server.token not in str(caught.value)


async def test_a_server_that_is_away_may_come_back() -> None:
    with pytest.raises(KmsError, match="does not answer") as caught:
        await kms_at(
            "vault+http://127.0.0.1:1/v1/transit/keys/statesvc", Credentials(token=SecretStr("t"))
        ).wrap(SECRET)
    assert caught.value.transient


async def test_without_a_token_nothing_is_asked(server: Vault) -> None:
    with pytest.raises(KmsError, match="STATESVC_KMS_TOKEN"):
        await kms_at(server.url, Credentials()).wrap(SECRET)
    assert server.calls == []


@pytest.mark.parametrize(
    "url",
    [
        "command:relative",
        "https://host/v1/transit/keys/x",
        "vault+https://host/v1/x",
        "vault+https://me:secret@host/v1/transit/keys/x",
        "",
    ],
)
def test_what_is_no_kms_is_refused(url: str) -> None:
    with pytest.raises(KmsError) as caught:
        kms_at(url, Credentials())
    assert "secret" not in str(caught.value)
