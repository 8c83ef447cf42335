"""Key management services, by the URL that names one."""

import asyncio
import base64
import binascii
from pathlib import Path
from typing import Final

from statesvc.database.kms.kms import Credentials, Kms, KmsError
from statesvc.database.kms.vault import VaultKms

_SECONDS: Final = 30.0
_BYTES_MAX: Final = 65_536
_SAID_MAX: Final = 200


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
        """Return False: it is never known."""
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
            process.kill()
            await process.wait()
            raise KmsError(
                f"the KMS's program {self._program} gave no answer in {_SECONDS:g} s",
                transient=True,
            ) from error
        if process.returncode != 0:
            why = said.decode(errors="replace").strip().partition("\n")[0][:_SAID_MAX]
            raise KmsError(
                f"the KMS's program {self._program} could not {action} (exit code {process.returncode}): {why or 'it said nothing'}"
            )
        try:
            result = base64.b64decode(answered.strip(), validate=True)
        except binascii.Error:
            result = b""
        if not 0 < len(result) <= _BYTES_MAX:
            raise KmsError(
                f"the KMS's program {self._program} answered `{action}` with something else than base64"
            )
        return result


def kms_at(url: str, credentials: Credentials) -> Kms:
    """Open `command:/path/to/program` or `vault+https://host:8200/v1/transit/keys/name`. Raises KmsError for what is neither."""
    scheme, _, rest = url.partition(":")
    match scheme:
        case "command" if rest.startswith("/"):
            return CommandKms(Path(rest))
        case "vault+https" | "vault+http":
            return VaultKms(url.removeprefix("vault+"), credentials)
        case _:
            raise KmsError(
                "STATESVC_KMS_URL must be command:/path/to/program or vault+https://host/v1/transit/keys/name"
            )
