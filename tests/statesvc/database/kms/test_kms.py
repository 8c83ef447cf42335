"""The services that hold the master key: what they wrap they unwrap, and what goes wrong is
said without a secret.
"""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from statesvc.database.kms.kms import Credentials, KmsError, kms_at
from tests.world.vault import Vault, vault

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


@pytest.fixture
async def server() -> AsyncIterator[Vault]:
    async with vault() as running:
        yield running


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
