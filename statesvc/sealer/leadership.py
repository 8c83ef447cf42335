"""Taking the lead: reading how far the log is, and holding it against every head that was published before.

A head says "these entries, in this order, for ever". A database that was restored from a backup, or changed, may not have them any more;
then nothing is signed until a human has checked.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from events.checkpoint import Checkpoint, NoteError, NoteSigner, VerifierKey, open_checkpoint
from events.crypto.sealing import MasterKeys, SealError
from events.merkle.compact_range import CompactRange
from events.merkle.retained_nodes import MissingHashError
from statesvc.log.checkpoints import SignedHead, latest_head
from statesvc.log.signing_keys import SigningKeyError, ensure_key, open_signers
from statesvc.log.tree_nodes import read_compact_range, tree_root
from statesvc.sealer.checkpoint_store import CheckpointStore, CheckpointStoreError, read_published, write_published
from statesvc.sealer.seal import SQL, RefusalError, SealedLog

_STORE_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Where heads go, and under which name the log is known. `file` None: heads are in the database alone.

    In the `store` they are stored too, by the publisher; a new leader holds the log against the newest there.
    """

    file: Path | None
    origin: str | None
    store: CheckpointStore | None = None


async def take_stock(connection: AsyncConnection[Any], master: MasterKeys, publication: Publication) -> tuple[SealedLog, SignedHead | None]:
    """How far the log is sealed and signed. Raises RefusalError where that contradicts what was published."""
    keys = [key.verifier for key in await ensure_key(connection, master, origin=publication.origin)]
    row = await (await connection.execute(SQL["horizon"], binary=True)).fetchone()
    size, sealed_at = row if row is not None else (0, None)
    head = await latest_head(connection)
    try:
        tree = await read_compact_range(connection, size) if size else CompactRange()
        if head is not None:
            signed = _open(head.note, keys, "the newest checkpoint in the database")
            if (signed.size, signed.root) != (head.tree_size, head.root):
                raise RefusalError("the newest checkpoint's row says something else than its note: the database was changed")
            await _compare(connection, signed, size, "the newest checkpoint in the database")
        if publication.file is not None and (note := read_published(publication.file)) is not None:
            where = f"the published checkpoint in {publication.file}"
            await _compare(connection, _open(note, keys, where), size, where)
        if publication.store is not None and (note := await _stored_latest(publication.store)) is not None:
            where = f"the latest checkpoint in {publication.store.name}"
            await _compare(connection, _open(note, keys, where), size, where)
    except MissingHashError as error:
        raise RefusalError(f"the log is incomplete: {error}; run `statesvc verify`") from error
    return SealedLog(tree=tree, sealed_at=sealed_at), head


async def _stored_latest(store: CheckpointStore) -> str | None:
    try:
        async with asyncio.timeout(_STORE_SECONDS):
            return await store.latest()
    except (CheckpointStoreError, TimeoutError) as error:
        why = str(error) or f"{store.name} cannot be read: it does not answer"
        raise RefusalError(f"{why}; without it nobody knows whether this log is the one that was published") from error


def _open(note: str, keys: Sequence[VerifierKey], where: str) -> Checkpoint:
    try:
        return open_checkpoint(note, keys, origin=keys[-1].name).checkpoint
    except NoteError as error:
        raise RefusalError(f"{where}: {error}") from error


async def _compare(connection: AsyncConnection[Any], signed: Checkpoint, size: int, where: str) -> None:
    if signed.size > size:
        raise RefusalError(
            f"{where} has {signed.size} entries, the database {size}: it was restored from an older backup, or entries were deleted"
        )
    if await tree_root(connection, signed.size) != signed.root:
        raise RefusalError(f"the first {signed.size} entries are not those of {where}: run `statesvc verify`")


async def publish(connection: AsyncConnection[Any], sealed: SealedLog, signers: Sequence[NoteSigner], file: Path | None) -> None:
    """Signs the head and makes it known: the file first. Raises RefusalError where that cannot be written; nothing is published then."""
    checkpoint = Checkpoint(signers[-1].verifier.name, sealed.tree.size, sealed.tree.root())
    note = checkpoint.signed(signers, at=sealed.sealed_at)
    if file is not None:
        try:
            write_published(file, note)
        except OSError as error:
            raise RefusalError(f"the checkpoint cannot be written to {file}: {error.strerror}") from error
    parameters = {"tree_size": checkpoint.size, "root": checkpoint.root, "note": note, "created_at": sealed.sealed_at}
    await connection.execute(SQL["publish"], parameters)


async def signers_of(connection: AsyncConnection[Any], master: MasterKeys) -> list[NoteSigner]:
    """Who signs now. Read for each head, so that a rotation takes effect at once. Raises RefusalError."""
    try:
        signers = open_signers(await ensure_key(connection, master, origin=None), master)
    except (SealError, SigningKeyError) as error:
        raise RefusalError(f"the log's signing key cannot be used: {error}") from error
    if not signers:
        raise RefusalError("the log has no live signing key: rotate it")
    return signers
