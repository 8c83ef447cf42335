"""Interface of a key management service."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr


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
