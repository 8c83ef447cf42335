"""Taking the lead: reads the extent of the sealed log and compares it with all published heads.

A head promises these entries, in this order, for ever. A restored or changed database may lack
them; then nothing is signed until an operator has checked.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog
from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys, SealError
from events.merkle.checkpoint import (
    Checkpoint,
    NoteError,
    NoteSigner,
    VerifierKey,
    open_checkpoint,
    origin_of,
)
from events.merkle.compact_range import CompactRange
from events.merkle.retained_nodes import MissingHashError
from statesvc.database.queries import queries
from statesvc.log.checkpoint_store import (
    CheckpointStore,
    CheckpointStoreError,
    read_published,
    write_published,
)
from statesvc.log.checkpoints import Epochs, SignedHead, latest_head, read_epochs
from statesvc.log.signing_keys import (
    SigningKey,
    SigningKeyError,
    ensure_key,
    open_signers,
    pin_keys,
    read_pinned_keys,
)
from statesvc.log.tree_nodes import read_compact_range, tree_root
from statesvc.sealer.seal import SQL, ForkError, RefusalError, SealedLog

_STORE_SECONDS: Final = 20.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Places where heads are published, and the name of the log. `file` None: only in the database.

    The publisher also puts them into the `store`; a new leader compares the log with the newest
    head there. `keys_file` pins the log's public keys: `verify` trusts these, and no key that
    only the database has.
    """

    file: Path | None
    keys_file: Path | None = None
    origin: str | None
    store: CheckpointStore | None = None


async def take_stock(
    connection: AsyncConnection[Any], master: MasterKeys, publication: Publication
) -> tuple[SealedLog, SignedHead | None]:
    """Return the sealed log. Raises RefusalError if it contradicts the published heads."""
    # a key of an older release is opened here, for its second half
    with _refusing_unusable_keys():
        found = await ensure_key(connection, master, origin=publication.origin)
    keys = [key.verifier for key in found]
    # before any signature is believed: a key that only the database has may have been inserted
    # there
    if publication.keys_file is not None:
        _check_pinned(publication.keys_file, found)
    row = await (await connection.execute(SQL["horizon"], binary=True)).fetchone()
    size, sealed_at, recorded_until = row if row is not None else (0, None, None)
    head = await latest_head(connection)
    epochs = await read_epochs(connection)
    try:
        tree = await read_compact_range(connection, size) if size else CompactRange()
        if head is not None:
            where = "the newest checkpoint in the database"
            own = PublishedHead(where, head.note, _open(head.note, keys, where))
            # readers go by the columns, auditors by the note: whoever changes one must not hide
            # behind the other
            if (own.checkpoint.size, own.checkpoint.root) != (head.tree_size, head.root):
                raise ForkError(
                    "the newest checkpoint's row says something else than its note: the database"
                    " was changed"
                )
            await _compare(connection, own, size, epochs)
        # outside the database: a restored backup agrees with itself, and only these show what it
        # lost
        for published in await published_heads(publication, keys):
            await _compare(connection, published, size, epochs)
    except MissingHashError as error:
        raise ForkError(f"the log is incomplete: {error}; run `statesvc verify`") from error
    return SealedLog(
        tree=tree, sealed_at=sealed_at, recorded_until=recorded_until, epoch=epochs.current
    ), head


@dataclass(frozen=True, slots=True)
class PublishedHead:
    """A head that a known key has signed, and where it was found."""

    where: str
    note: str
    checkpoint: Checkpoint


async def published_heads(
    publication: Publication, keys: Sequence[VerifierKey]
) -> list[PublishedHead]:
    """Return the newest heads that lie outside the database. Raises RefusalError."""
    notes = {}
    if publication.file is not None:
        notes[f"the published checkpoint in {publication.file}"] = read_published(publication.file)
    if publication.store is not None:
        notes[f"the latest checkpoint in {publication.store.name}"] = await _stored_latest(
            publication.store
        )
    return [
        PublishedHead(where, note, _open(note, keys, where))
        for where, note in notes.items()
        if note is not None
    ]


def _check_pinned(file: Path, found: Sequence[SigningKey]) -> None:
    """Pin the keys of a log that has none pinned yet.

    A retired key has no secret half to prove it, so it must have been pinned while it was live.
    The secret half of a live key is opened before it signs.
    """
    try:
        pinned = read_pinned_keys(file)
        if not pinned:
            pin_keys(file, (key.verifier for key in found))
            _log.info("log_keys_pinned", count=len(found))
            return
    except (OSError, NoteError) as error:
        raise RefusalError(f"the log's pinned keys in {file} cannot be used: {error}") from error
    keys = {key.verifier for key in found}
    if gone := [key for key in pinned if key not in keys]:
        raise ForkError(
            f"the database lacks the log's key {gone[0].key_id.hex()} that is pinned in {file}: it"
            " was changed, or is another's"
        )
    if strange := [
        key.verifier for key in found if key.sealed_seed is None and key.verifier not in pinned
    ]:
        raise ForkError(
            f"the retired key {strange[0].key_id.hex()} was never pinned in {file}: it was inserted"
            " into the database"
        )


async def _stored_latest(store: CheckpointStore) -> str | None:
    try:
        async with asyncio.timeout(_STORE_SECONDS):
            return await store.latest()
    except (CheckpointStoreError, TimeoutError) as error:
        why = str(error) or f"{store.name} cannot be read: it does not answer"
        raise RefusalError(
            f"{why}; without it nobody knows whether this log is the one that was published"
        ) from error


def _open(note: str, keys: Sequence[VerifierKey], where: str) -> Checkpoint:
    try:
        return open_checkpoint(note, keys, origin=keys[-1].name).checkpoint
    except NoteError as error:
        raise RefusalError(f"{where}: {error}") from error


async def _compare(
    connection: AsyncConnection[Any], published: PublishedHead, size: int, epochs: Epochs
) -> None:
    where, signed = published.where, published.checkpoint
    if signed.epoch > epochs.current:
        raise ForkError(
            f"{where} is of epoch {signed.epoch}, the database of epoch {epochs.current}: it was"
            " restored from a backup older than the fork"
        )
    if signed.epoch < epochs.current and signed.size > epochs.common(signed.epoch):
        # of a history that was given up: the fork's entry says so
        return
    if signed.size > size:
        raise ForkError(
            f"{where} has {signed.size} entries, the database {size}: it was restored from an older"
            " backup, or entries were deleted. Restore up to the newest transaction, or accept the"
            " loss with `statesvc log fork --why`"
        )
    # the root of a prefix: the log may have grown since, but these entries must be the same
    if await tree_root(connection, signed.size) != signed.root:
        raise ForkError(
            f"the first {signed.size} entries are not those of {where}: run `statesvc verify`"
        )


async def publish(
    connection: AsyncConnection[Any],
    sealed: SealedLog,
    signers: Sequence[NoteSigner],
    publication: Publication,
) -> None:
    """Sign the head and publish it, to the files first.

    Raises RefusalError if the files cannot be written; then nothing is published.
    """
    checkpoint = Checkpoint(
        origin_of(signers[-1].verifier.name, sealed.epoch), sealed.tree.size, sealed.tree.root()
    )
    note = checkpoint.signed(signers, at=sealed.sealed_at)
    try:
        if publication.keys_file is not None:
            # before the head that it signs: `verify` must never meet a head of a key that is not
            # pinned
            pin_keys(publication.keys_file, (signer.verifier for signer in signers))
        if publication.file is not None:
            # before the database: the file is never behind what a reader saw, so a restored backup
            # is behind the file. In a thread: the notifier's loop does not wait for the disk
            await asyncio.to_thread(write_published, publication.file, note)
    except (OSError, NoteError) as error:
        raise RefusalError(
            f"the checkpoint cannot be written to {publication.file}: {error}"
        ) from error
    # by each, as the note: who trusts the old key alone holds the head until that is retired
    second = [signer.second_signature(checkpoint, at=sealed.sealed_at) for signer in signers]
    parameters = {
        "tree_size": checkpoint.size,
        "root": checkpoint.root,
        "note": note,
        "created_at": sealed.sealed_at,
        "second_signature": "".join(filter(None, second)) or None,
    }
    await connection.execute(SQL["publish"], parameters)


async def signers_of(connection: AsyncConnection[Any], master: MasterKeys) -> list[NoteSigner]:
    """Return the present signers. Raises RefusalError.

    Read for each head, so that a rotation takes effect at once.
    """
    with _refusing_unusable_keys():
        signers = open_signers(await ensure_key(connection, master, origin=None), master)
    if not signers:
        raise RefusalError("the log has no live signing key: rotate it")
    return signers


@contextmanager
def _refusing_unusable_keys() -> Iterator[None]:
    try:
        yield
    except (SealError, SigningKeyError) as error:
        raise RefusalError(f"the log's signing key cannot be used: {error}") from error


# Above the pause between two sweeps, and a pass.
SILENT_SECONDS: Final = 45.0

_SQL = queries("statesvc.sealer", "leadership")


class SilentLead(NamedTuple):
    """`pid`: of the server's process."""

    pid: int
    seconds: float

    @property
    def sentence(self) -> str:
        return (
            f"the session of process {self.pid} on the database's server leads the sealers and has"
            f" been silent for {self.seconds:,.0f} s. Another sealer ends it with"
            f" pg_terminate_backend({self.pid}); where that does not help the process is stopped:"
            f" `kill -CONT {self.pid}` there, or restart the server"
        )


async def silent_lead(
    connection: AsyncConnection[Any],
    *,
    silent_seconds: float = SILENT_SECONDS,
    lost_pid: int | None = None,
) -> SilentLead | None:
    """Return the leader if it has been silent for that long; None: no leader, or a working one."""
    parameters = {"silent_seconds": silent_seconds, "lost_pid": lost_pid}
    row = await (await connection.execute(_SQL["silent_lead"], parameters)).fetchone()
    return None if row is None else SilentLead(*row)


async def end_session(connection: AsyncConnection[Any], lead: SilentLead) -> None:
    """End the session, unless its process is stopped."""
    await connection.execute(_SQL["end_session"], {"pid": lead.pid})
