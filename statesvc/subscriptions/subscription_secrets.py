"""A subscription's secrets, stored sealed under the master key: those that sign, made here and
shown once, a broker's login, own headers.

Of an Ed25519 pair the secret half never leaves the service; what is shown, at any
time, is the public one.

At most two are live. After a rotation the former one lives on for a grace period, in which
everything is signed with both.
"""

import base64
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal, Self
from uuid import UUID

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from events.crypto.keyring import Keyring
from statesvc.delivery.outgoing import Destination, Login
from statesvc.delivery.signing import SECRET_PREFIX, SigningKey, shared_text

KeyType = Literal["hmac", "ed25519"]

PRIVATE_PREFIX: Final = "whsk_"
PUBLIC_PREFIX: Final = "whpk_"
SECRET_BYTES: Final = 32
# Length that a shared secret may have, by Standard Webhooks.
CHOSEN_BYTES: Final = range(24, 65)
ROTATION_GRACE_HOURS_MAX: Final = 7 * 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """`retires_at`: the end of its signatures; None for the current secret."""

    key: bytes = field(repr=False)
    """Key bytes; of an Ed25519 pair: its seed."""
    kind: KeyType = "hmac"
    retires_at: datetime | None = None

    @classmethod
    def fresh(cls, kind: KeyType = "hmac") -> Self:
        return cls(key=secrets.token_bytes(SECRET_BYTES), kind=kind)

    @classmethod
    def chosen(cls, text: str) -> Self:
        """Parse a text of `written`, or a caller's. Raises ValueError."""
        kind: KeyType = "ed25519" if text.startswith(PRIVATE_PREFIX) else "hmac"
        prefix = PRIVATE_PREFIX if kind == "ed25519" else SECRET_PREFIX
        try:
            key = base64.b64decode(text.removeprefix(prefix), validate=True)
        except ValueError:
            key = b""
        # after decoding: base64 of the wrong length is refused like any other text
        if not text.startswith(prefix) or (
            len(key) != SECRET_BYTES if kind == "ed25519" else len(key) not in CHOSEN_BYTES
        ):
            raise ValueError(
                f"must be `{SECRET_PREFIX}` and {CHOSEN_BYTES[0]} to {CHOSEN_BYTES[-1]} random"
                f" bytes in base64, or `{PRIVATE_PREFIX}` and the {SECRET_BYTES} of an Ed25519 seed"
            )
        return cls(key=key, kind=kind)

    @property
    def written(self) -> str:
        """Text that `chosen` reads."""
        return (PRIVATE_PREFIX if self.kind == "ed25519" else SECRET_PREFIX) + base64.b64encode(
            self.key
        ).decode()

    @property
    def shown(self) -> str:
        """Text that its subscriber gets: the secret itself, or the public key of a pair."""
        match self.signer:
            case Ed25519PrivateKey() as pair:
                return (
                    PUBLIC_PREFIX + base64.b64encode(pair.public_key().public_bytes_raw()).decode()
                )
            case key:
                return shared_text(key)

    @property
    def signer(self) -> SigningKey:
        """Key that `sign` takes."""
        return self.key if self.kind == "hmac" else Ed25519PrivateKey.from_private_bytes(self.key)

    def signs_at(self, now: datetime) -> bool:
        return self.retires_at is None or self.retires_at > now


def live(held: Sequence[Secret], now: datetime) -> tuple[SigningKey, ...]:
    """Return the keys to sign with, current first."""
    return tuple(secret.signer for secret in held if secret.signs_at(now))


def rotated(
    held: Sequence[Secret], new: Secret, *, now: datetime, grace: timedelta
) -> tuple[Secret, ...]:
    """Return the new secret, and the current one until the end of its grace.

    Older ones end at once.
    """
    former = [
        replace(secret, retires_at=now + grace) for secret in held if secret.retires_at is None
    ]
    # current first: receivers that check only the first signature get the new key's
    return (new, *former) if grace > timedelta(0) else (new,)


def seal_secrets(keyring: Keyring, subscription_id: UUID, held: Sequence[Secret]) -> list[bytes]:
    """Seal secrets under the master key, bound to the subscription."""
    return [keyring.master.seal(_document(secret), _context(subscription_id)) for secret in held]


def open_secrets(
    keyring: Keyring, subscription_id: UUID, sealed: Sequence[bytes]
) -> tuple[Secret, ...]:
    """Open secrets.

    `SealError` where one was sealed under a master key that is gone, or for another subscription.
    """
    return tuple(_secret(keyring.master.open(one, _context(subscription_id))) for one in sealed)


def _context(subscription_id: UUID) -> bytes:
    # bound to its subscription: a sealed secret that is copied into another row does not open there
    return b"subscription\x1f" + subscription_id.bytes


def _document(secret: Secret) -> bytes:
    return orjson.dumps(
        {
            "key": base64.b64encode(secret.key).decode(),
            "kind": secret.kind,
            "retires_at": secret.retires_at,
        }
    )


def _secret(document: bytes) -> Secret:
    fields = orjson.loads(document)
    retires_at = fields["retires_at"]
    # sealed before there were pairs: without a kind it is a shared secret
    kind: KeyType = fields.get("kind", "hmac")
    return Secret(
        key=base64.b64decode(fields["key"]),
        kind=kind,
        retires_at=datetime.fromisoformat(retires_at) if retires_at else None,
    )


def seal_login(keyring: Keyring, subscription_id: UUID, login: Login | None) -> bytes | None:
    """Seal the login of a broker, bound to the subscription; None for none."""
    if login is None:
        return None
    return keyring.master.seal(
        orjson.dumps({"user": login.user, "password": login.password}),
        _login_context(subscription_id),
    )


def open_login(keyring: Keyring, subscription_id: UUID, sealed: bytes | None) -> Login | None:
    """Open a login.

    `SealError` where it was sealed under a master key that is gone, or for another subscription.
    """
    if sealed is None:
        return None
    fields = orjson.loads(keyring.master.open(sealed, _login_context(subscription_id)))
    return Login(user=fields["user"], password=fields["password"])


def seal_headers(
    keyring: Keyring, subscription_id: UUID, headers: Mapping[str, str]
) -> bytes | None:
    """Return the receiver's own headers, bound to the subscription; None for none."""
    return (
        keyring.master.seal(orjson.dumps(headers), _headers_context(subscription_id))
        if headers
        else None
    )


def open_headers(keyring: Keyring, subscription_id: UUID, sealed: bytes | None) -> dict[str, str]:
    """Raise `SealError` where they were sealed under a master key that is gone, or
    for another subscription.
    """
    if sealed is None:
        return {}
    headers: dict[str, str] = orjson.loads(
        keyring.master.open(sealed, _headers_context(subscription_id))
    )
    return headers


def open_destination(
    keyring: Keyring,
    subscription_id: UUID,
    url: str,
    *,
    sealed_login: bytes | None,
    sealed_headers: bytes | None,
) -> Destination:
    """Return where its notifications go. Raise `SealError` like the others."""
    login = open_login(keyring, subscription_id, sealed_login)
    return Destination(url, login, open_headers(keyring, subscription_id, sealed_headers))


def _login_context(subscription_id: UUID) -> bytes:
    # another context than the secrets': neither opens in the other's place
    return b"subscription-login\x1f" + subscription_id.bytes


def _headers_context(subscription_id: UUID) -> bytes:
    return b"subscription-headers\x1f" + subscription_id.bytes
