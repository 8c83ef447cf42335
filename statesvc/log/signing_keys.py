"""The keys that sign checkpoints: the first from the sealer's first start, others from rotations.

A key is never removed. An action in the log names a new key, and the old key signs beside it until
it is retired. So a checkpoint signed by the old key vouches for the new key, which an intruder with
the database alone cannot forge.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from events.merkle.checkpoint import NoteSigner, VerifierKey
from statesvc.database.queries import queries
from statesvc.log.actions import record_action
from statesvc.log.checkpoint_store import write_published
from statesvc.log.checkpoints import SQL

ROTATE: Final = "log_key.rotate"
RETIRE: Final = "log_key.retire"
_CONTEXT: Final = b"log signing key\x1f"
_WRITE = queries("statesvc.log", "signing_keys")


class SigningKeyError(ValueError):
    """A key that cannot be used, made or retired as asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A key. `sealed_seed` None: retired, its secret is gone.

    `cosigner`: its ML-DSA-44 half; None: it never signed under a release that has it.
    """

    verifier: VerifierKey
    cosigner: VerifierKey | None
    created_at: datetime
    retired_at: datetime | None
    sealed_seed: bytes | None = field(repr=False)


async def read_keys(connection: AsyncConnection[Any]) -> list[SigningKey]:
    """Return all keys, the first one first."""
    cursor = await connection.execute(SQL["signing_keys"], binary=True)
    return [
        SigningKey(
            verifier=VerifierKey(origin, public_key),
            cosigner=cosigner and VerifierKey(origin, cosigner),
            sealed_seed=sealed_seed,
            created_at=created_at,
            retired_at=retired_at,
        )
        for origin, public_key, cosigner, sealed_seed, created_at, retired_at in await cursor.fetchall()
    ]


def open_signers(keys: Sequence[SigningKey], master: MasterKeys) -> list[NoteSigner]:
    """Open the keys that sign now.

    Raises SealError under another master key, SigningKeyError where the two halves do not fit.
    """
    signers = []
    for key in keys:
        if key.sealed_seed is not None:
            signer = NoteSigner(
                key.verifier.name, master.open(key.sealed_seed, _CONTEXT + key.verifier.key_id)
            )
            # a changed public half would publish heads that no pinned key verifies
            # a machine whose OpenSSL has no ML-DSA signs by Ed25519 alone: nothing was changed
            has_strange_half = signer.cosigner is not None and key.cosigner not in {
                None,
                signer.cosigner,
            }
            if signer.verifier != key.verifier or has_strange_half:
                raise SigningKeyError(
                    f"the public half of the log's key {key.verifier.key_id.hex()} was changed in"
                    " the database"
                )
            signers.append(signer)
    return signers


async def ensure_key(
    connection: AsyncConnection[Any], master: MasterKeys, *, origin: str | None
) -> list[SigningKey]:
    """Return all keys; make the first if there is none. Only one caller at a time.

    `origin`: name of the log; None: a random name.
    """
    keys = await read_keys(connection)
    if not keys:
        await _insert(
            connection, NoteSigner.fresh(origin or f"statesvc.local/{secrets.token_hex(4)}"), master
        )
        keys = await read_keys(connection)
    elif any(key.sealed_seed is not None and key.cosigner is None for key in keys):
        for signer in filter(lambda each: each.cosigner is not None, open_signers(keys, master)):
            await connection.execute(_WRITE["add_cosigner"], _public(signer))
        keys = await read_keys(connection)
    return keys


async def rotate(
    connection: AsyncConnection[Any], master: MasterKeys, *, actor: str, why: str
) -> VerifierKey:
    """Add a key, which signs beside the others, in the caller's transaction."""
    signer = await make_key(connection, master)
    details = {"key": str(signer.verifier), "why": why}
    await record_action(
        connection,
        actor=actor,
        verb=ROTATE,
        target=f"log key {signer.verifier.key_id.hex()}",
        details=details,
    )
    return signer.verifier


async def make_key(connection: AsyncConnection[Any], master: MasterKeys) -> NoteSigner:
    """Make another key, for the caller to announce. Raises SigningKeyError."""
    # read again: `created_at` and the id are the database's
    keys = await read_keys(connection)
    if not keys:
        raise SigningKeyError(
            "the log has no key yet: the sealer makes the first one when it starts"
        )
    # under the same name: the origin of a log never changes
    signer = NoteSigner.fresh(keys[-1].verifier.name)
    await _insert(connection, signer, master)
    return signer


async def retire_at_once(connection: AsyncConnection[Any], key_id: bytes) -> None:
    """Destroy the secret half of a key; the caller knows that another key signs."""
    await connection.execute(_WRITE["retire"], {"key_id": key_id})


async def retire(connection: AsyncConnection[Any], key_id: bytes, *, actor: str, why: str) -> None:
    """Destroy the secret half of a key, in the caller's transaction. Raises SigningKeyError."""
    keys = await read_keys(connection)
    found = next((key for key in keys if key.verifier.key_id == key_id), None)
    if found is None or found.retired_at is not None:
        raise SigningKeyError("no live key of the log has this id")
    heirs = [key for key in keys if key.retired_at is None and key.created_at > found.created_at]
    if not heirs:
        raise SigningKeyError("it is the newest key of the log: rotate first")
    announced = await (
        await connection.execute(
            _WRITE["unannounced"], {"verb": ROTATE, "targets": [_target(key) for key in heirs]}
        )
    ).fetchone()
    # the old key must have signed the announcement, or nobody could tell the new key from an
    # intruder's
    if announced is not None:
        raise SigningKeyError(
            "no checkpoint covers the announcement of the newer key yet: the sealer must run once"
            " more"
        )
    await retire_at_once(connection, key_id)
    await record_action(
        connection, actor=actor, verb=RETIRE, target=_target(found), details={"why": why}
    )


async def rewrap_seeds(connection: AsyncConnection[Any], master: MasterKeys) -> int:
    """Seal the secret halves under the current master key; return how many were under another.

    Raises SealError.
    """
    rewrapped = 0
    for key in await read_keys(connection):
        if key.sealed_seed is not None and not master.current.sealed(key.sealed_seed):
            context = _CONTEXT + key.verifier.key_id
            new = master.seal(master.open(key.sealed_seed, context), context)
            done = await connection.execute(
                _WRITE["rewrap"],
                # only where it is still the seal that was read: a key retired meanwhile must not
                # get its secret back
                {"key_id": key.verifier.key_id, "old": key.sealed_seed, "new": new},
            )
            rewrapped += done.rowcount
    return rewrapped


def _target(key: SigningKey) -> str:
    return f"log key {key.verifier.key_id.hex()}"


async def _insert(connection: AsyncConnection[Any], signer: NoteSigner, master: MasterKeys) -> None:
    public = _public(signer)
    sealed_seed = master.seal(signer.seed, _CONTEXT + signer.verifier.key_id)
    await connection.execute(_WRITE["insert"], {**public, "sealed_seed": sealed_seed})


def _public(signer: NoteSigner) -> dict[str, str | bytes | None]:
    cosigner = signer.cosigner
    return {
        "key_id": signer.verifier.key_id,
        "origin": signer.verifier.name,
        "public_key": signer.verifier.public_key,
        "cosigner": None if cosigner is None else cosigner.public_key,
    }


def read_pinned_keys(file: Path) -> list[VerifierKey]:
    """Read the pinned keys; none if there is no file yet. Raises OSError, NoteError."""
    try:
        lines = file.read_text("utf-8").split()
    except FileNotFoundError:
        return []
    return [VerifierKey.parse(line) for line in lines]


def pin_keys(file: Path, keys: Iterable[VerifierKey]) -> list[VerifierKey]:
    """Add the keys that are not there yet, and return these. Raises OSError, NoteError."""
    pinned = read_pinned_keys(file)
    added = [key for key in keys if key not in pinned]
    if added:
        write_published(file, "".join(f"{key}\n" for key in [*pinned, *added]))
    return added
