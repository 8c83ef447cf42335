"""Means to sign and send a subscription's notifications, opened where that is used, and the public
keys that verify them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from events.crypto.keyring import Keyring
from events.crypto.sealing import SealError
from statesvc.database.queries import queries
from statesvc.delivery.outgoing import Destination
from statesvc.delivery.signing import OlderSignature, SigningKey
from statesvc.subscriptions.subscription_secrets import live, open_destination, open_secrets

_SQL = queries("statesvc.subscriptions", "signing_means")


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningMeans:
    """Means of a delivery: the address, the keys that sign now, an older signature beside
    theirs, and which payload.
    """

    destination: Destination
    keys: tuple[SigningKey, ...]
    older: OlderSignature | None
    payload: str
    pii: bool


async def read_signing_means(
    connection: AsyncConnection[Any], keyring: Keyring, subscription_id: UUID
) -> SigningMeans | None:
    """Return the means of a test; None where there is no such subscription."""
    row = await (
        await connection.execute(
            _SQL["read_means"], {"subscription_id": subscription_id}, binary=True
        )
    ).fetchone()
    if row is None:
        return None
    sealed_secrets, now, url, sealed_login, sealed_headers, signature, payload, pii = row
    return SigningMeans(
        destination=open_destination(
            keyring, subscription_id, url, sealed_login=sealed_login, sealed_headers=sealed_headers
        ),
        keys=live(open_secrets(keyring, subscription_id, sealed_secrets), now),
        older=older_signature(signature),
        payload=payload,
        pii=pii,
    )


def older_signature(stored: dict[str, str] | None) -> OlderSignature | None:
    if stored is None:
        return None
    return OlderSignature(
        header=stored["header"],
        encoding="hex" if stored["encoding"] == "hex" else "base64",
        prefix=stored["prefix"],
    )


async def read_public_keys(
    connection: AsyncConnection[Any], keyring: Keyring, subscription_ids: Sequence[UUID]
) -> dict[UUID, list[str]]:
    """Return the keys that verify new signatures, of those that sign with
    Ed25519; of the others none.
    """
    cursor = await connection.execute(
        _SQL["read_all_secrets"], {"subscription_ids": list(subscription_ids)}, binary=True
    )
    return {
        one: _shown_keys(keyring, one, sealed, now) for one, sealed, now in await cursor.fetchall()
    }


def _shown_keys(
    keyring: Keyring, subscription_id: UUID, sealed: Sequence[bytes], now: datetime
) -> list[str]:
    try:
        held = open_secrets(keyring, subscription_id, sealed)
    except SealError:
        return []
    return [secret.shown for secret in held if secret.kind == "ed25519" and secret.signs_at(now)]
