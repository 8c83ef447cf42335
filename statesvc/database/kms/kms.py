"""What is asked of a key management service."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr


class KmsError(RuntimeError):
    """It does not answer, or refuses; the message says which and names no secret. `transient`: asking again may help."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class Kms(Protocol):
    """Wraps and unwraps small secrets under a key that never leaves it. `name` names that key, without host or credentials."""

    @property
    def name(self) -> str:
        """Which key, wherever the service is reached."""

    async def wrap(self, secret: bytes) -> bytes:
        """The secret under the newest version of the key. Raises KmsError."""

    async def unwrap(self, wrapped: bytes) -> bytes:
        """The secret, whichever version wrapped it. Raises KmsError."""

    async def is_outdated(self, wrapped: bytes) -> bool:
        """Whether the key has a newer version than the one that wrapped this. Raises KmsError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a service asks for: a token, or a file that holds one and may be replaced at any time."""

    token: SecretStr | None = None
    token_file: Path | None = None
