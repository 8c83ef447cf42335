"""A subscription's signing secrets: made here, shown once, stored sealed under the master key.

At most two are live. A rotation keeps the former one for a grace period, in which everything is signed with both.
"""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Self
from uuid import UUID

import orjson

from events.keyring import Keyring

PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
ROTATION_GRACE_HOURS_MAX: Final = 7 * 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """`retires_at`: from when on nothing is signed with it any more; None for the current one."""

    key: bytes = field(repr=False)
    retires_at: datetime | None = None

    @classmethod
    def fresh(cls) -> Self:
        """A new random secret."""
        return cls(key=secrets.token_bytes(SECRET_BYTES))

    @property
    def shown(self) -> str:
        """As its subscriber gets it."""
        return PREFIX + base64.b64encode(self.key).decode()


def live(held: Sequence[Secret], now: datetime) -> tuple[bytes, ...]:
    """The keys to sign with, current first."""
    return tuple(secret.key for secret in held if secret.retires_at is None or secret.retires_at > now)


def rotated(held: Sequence[Secret], new: Secret, *, now: datetime, grace: timedelta) -> tuple[Secret, ...]:
    """The new secret, and the current one until the end of its grace. Older ones end at once."""
    former = [replace(secret, retires_at=now + grace) for secret in held if secret.retires_at is None]
    return (new, *former) if grace > timedelta(0) else (new,)


def seal_secrets(keyring: Keyring, subscription_id: UUID, held: Sequence[Secret]) -> list[bytes]:
    """Sealed under the master key, bound to the subscription."""
    return [keyring.master.seal(_document(secret), _context(subscription_id)) for secret in held]


def open_secrets(keyring: Keyring, subscription_id: UUID, sealed: Sequence[bytes]) -> tuple[Secret, ...]:
    """`SealError` where one was sealed under a master key that is gone, or for another subscription."""
    return tuple(_secret(keyring.master.open(one, _context(subscription_id))) for one in sealed)


def _context(subscription_id: UUID) -> bytes:
    return b"subscription\x1f" + subscription_id.bytes


def _document(secret: Secret) -> bytes:
    return orjson.dumps({"key": base64.b64encode(secret.key).decode(), "retires_at": secret.retires_at})


def _secret(document: bytes) -> Secret:
    fields = orjson.loads(document)
    retires_at = fields["retires_at"]
    return Secret(key=base64.b64decode(fields["key"]), retires_at=datetime.fromisoformat(retires_at) if retires_at else None)
