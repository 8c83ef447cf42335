"""Key management services, by URL."""

import asyncio
import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import aiohttp
import orjson
from pydantic import SecretStr

_SECONDS: Final = 30.0
_BYTES_MAX: Final = 65_536
_SAID_MAX: Final = 200
_VAULT_SECONDS: Final = 15.0
# Bound to the wrapped key: no other wrap of the KMS key unwraps as ours.
_PURPOSE: Final = base64.b64encode(b"statesvc root key").decode()
_PATH: Final = re.compile(r"/v1/(?P<mount>[\w./-]+)/keys/(?P<key>[\w.-]+)")
_WRAPPED: Final = re.compile(r"vault:v([0-9]+):[A-Za-z0-9+/=]+")


class KmsError(RuntimeError):
    """A KMS is silent or refuses; the message names no secret. `transient`: a retry may help."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class Kms(Protocol):
    """Wraps and unwraps small secrets under a key that never leaves it.

    `name` names that key, without host or credentials.
    """

    @property
    def name(self) -> str:
        """Name of the key, wherever the service is reached."""

    async def wrap(self, secret: bytes) -> bytes:
        """Wrap the secret under the newest version of the key. Raises KmsError."""

    async def unwrap(self, wrapped: bytes) -> bytes:
        """Unwrap the secret, wrapped by any version. Raises KmsError."""

    async def is_outdated(self, wrapped: bytes) -> bool:
        """Return whether a newer version exists than wrapped this. Raises KmsError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials for a service: a token, or a file that holds one and may be replaced at any
    time.
    """

    token: SecretStr | None = None
    token_file: Path | None = None


class CommandKms:
    """`PROGRAM wrap` and `PROGRAM unwrap` read base64 on standard input and write base64.

    The program decides about versions: it wraps under the newest, unwraps whatever it once wrapped.
    """

    def __init__(self, program: Path) -> None:
        self._program = program
        self.name = f"command:{program.name}"

    async def wrap(self, secret: bytes) -> bytes:
        return await self._run("wrap", secret)

    async def unwrap(self, wrapped: bytes) -> bytes:
        return await self._run("unwrap", wrapped)

    async def is_outdated(self, wrapped: bytes) -> bool:  # noqa: ARG002 - a program does not say
        """Return False: unknown here."""
        return False

    async def _run(self, action: str, data: bytes) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                action,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise KmsError(
                f"the KMS's program {self._program} cannot be run: {error.strerror}"
            ) from error
        try:
            async with asyncio.timeout(_SECONDS):
                answered, said = await process.communicate(base64.b64encode(data) + b"\n")
        except TimeoutError as error:
            # and then waited for: a killed child stays a zombie until its parent has asked
            process.kill()
            await process.wait()
            raise KmsError(
                f"the KMS's program {self._program} gave no answer in {_SECONDS:g} s",
                transient=True,
            ) from error
        if process.returncode != 0:
            # one bounded line: it becomes part of an error's text
            why = said.decode(errors="replace").strip().partition("\n")[0][:_SAID_MAX]
            raise KmsError(
                f"the KMS's program {self._program} could not {action} (exit code"
                f" {process.returncode}): {why or 'it said nothing'}"
            )
        try:
            result = base64.b64decode(answered.strip(), validate=True)
        except binascii.Error:
            result = b""
        if not 0 < len(result) <= _BYTES_MAX:
            raise KmsError(
                f"the KMS's program {self._program} answered `{action}` with something else than"
                " base64"
            )
        return result


class VaultKms:
    """A key of the transit engine of HashiCorp Vault or OpenBao, over HTTP.

    Its type is an AEAD, as the default aes256-gcm96 is.
    """

    def __init__(self, url: str, credentials: Credentials) -> None:
        parts = urlsplit(url)
        found = _PATH.fullmatch(parts.path)
        if found is None or not parts.hostname or parts.username is not None or parts.query:
            raise KmsError(
                "STATESVC_KMS_URL: a key in Vault is vault+https://host:8200/v1/transit/keys/name"
            )
        self._base = f"{parts.scheme}://{parts.netloc}/v1/{found['mount']}"
        self._key = found["key"]
        self._credentials = credentials
        self.name = f"vault:{found['mount']}/keys/{found['key']}"

    async def wrap(self, secret: bytes) -> bytes:
        """Wrap the secret as Vault writes it: `vault:v3:...`."""
        given = {"plaintext": base64.b64encode(secret).decode(), "associated_data": _PURPOSE}
        answer = await self._call("POST", f"encrypt/{self._key}", given)
        wrapped = answer.get("ciphertext")
        if not isinstance(wrapped, str) or _WRAPPED.fullmatch(wrapped) is None:
            raise KmsError(f"{self.name} answered with something else than a ciphertext")
        return wrapped.encode()

    async def unwrap(self, wrapped: bytes) -> bytes:
        answer = await self._call(
            "POST",
            f"decrypt/{self._key}",
            {"ciphertext": wrapped.decode("ascii"), "associated_data": _PURPOSE},
        )
        try:
            return base64.b64decode(answer["plaintext"], validate=True)
        except (KeyError, TypeError, binascii.Error):
            raise KmsError(f"{self.name} answered with something else than a plaintext") from None

    async def is_outdated(self, wrapped: bytes) -> bool:
        found = _WRAPPED.fullmatch(wrapped.decode("ascii", errors="replace"))
        latest = (await self._call("GET", f"keys/{self._key}", None)).get("latest_version")
        return found is not None and isinstance(latest, int) and int(found[1]) < latest

    async def _call(self, method: str, path: str, given: dict[str, str] | None) -> dict[str, Any]:
        headers = {"X-Vault-Token": self._token(), "X-Vault-Request": "true"}
        timeout = aiohttp.ClientTimeout(total=_VAULT_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.request(
                    method,
                    f"{self._base}/{path}",
                    json=given,
                    headers=headers,
                    # a redirect would carry the token to another host
                    allow_redirects=False,
                ) as answer,
            ):
                status, body = answer.status, await answer.content.read(_BYTES_MAX)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KmsError(
                f"{self.name} does not answer: {type(error).__name__}", transient=True
            ) from error
        if status != 200:
            reasons = {
                403: "the token is refused, or may not use this key",
                404: "there is no such key",
                503: "it is sealed or in maintenance",
            }
            again = status >= 500 or status in {429, 472, 473}
            raise KmsError(
                f"{self.name} answered {status}: {reasons.get(status, 'see its audit log')}",
                transient=again,
            )
        try:
            data = orjson.loads(body)["data"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            data = None
        if not isinstance(data, dict):
            raise KmsError(f"{self.name} answered with something else than Vault does")
        return data

    def _token(self) -> str:
        if self._credentials.token_file is not None:
            return _read(self._credentials.token_file)
        if self._credentials.token is not None:
            return self._credentials.token.get_secret_value()
        raise KmsError("Vault wants a token: set STATESVC_KMS_TOKEN_FILE or STATESVC_KMS_TOKEN")


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise KmsError(
            f"the token in {path} cannot be read: {error.strerror}", transient=True
        ) from error


def kms_at(url: str, credentials: Credentials) -> Kms:
    """Open `command:/path/to/program` or `vault+https://host:8200/v1/transit/keys/name`.

    Raises KmsError for other URLs.
    """
    scheme, _, rest = url.partition(":")
    match scheme:
        case "command" if rest.startswith("/"):
            return CommandKms(Path(rest))
        case "vault+https" | "vault+http":
            return VaultKms(url.removeprefix("vault+"), credentials)
        case _:
            raise KmsError(
                "STATESVC_KMS_URL must be command:/path/to/program or"
                " vault+https://host/v1/transit/keys/name"
            )
