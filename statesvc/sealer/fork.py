"""A fork of the log: after a restore that lost published entries, the log goes on in a new epoch.

The first entry of the epoch binds the size and root of the newest published head, and the reason.
It is sealed and signed in the transaction that writes it, before other waiting entries, so every
head of the epoch covers it.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from events.crypto.sealing import MasterKeys
from events.merkle.checkpoint import Checkpoint, NoteError, NoteSigner, VerifierKey
from events.merkle.retained_nodes import MissingHashError
from statesvc.database.queries import queries
from statesvc.log.actions import Action, append_actions
from statesvc.log.batch_row import BatchStamp, begin_batch, write_batch
from statesvc.log.checkpoints import FORK, Epochs, read_epochs
from statesvc.log.signing_keys import (
    RETIRE,
    ROTATE,
    SigningKey,
    make_key,
    open_signers,
    read_keys,
    read_pinned_keys,
    retire_at_once,
)
from statesvc.log.tree_nodes import tree_root
from statesvc.sealer.leadership import (
    Publication,
    PublishedHead,
    publish,
    published_heads,
    take_stock,
)
from statesvc.sealer.seal import SQL as SEAL
from statesvc.sealer.seal import seal

_SQL = queries("statesvc.sealer", "fork")
_LEAD_TRIES: Final = 20
_LEAD_SECONDS: Final = 0.5
Connection = AsyncConnection[Any]


class NoForkError(RuntimeError):
    """The log cannot be forked, or need not be; the message gives the reason and the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    """A request to fork the log.

    `retired`: ids of signing keys that were retired before the restore, and must not sign again.
    """

    actor: str
    why: str
    retired: Collection[bytes] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LostHistory:
    """The present end of the log, and the newest published head beyond it."""

    size: int
    root: bytes
    epochs: Epochs
    head: PublishedHead

    @property
    def next_epoch(self) -> int:
        return max(self.epochs.current, self.head.checkpoint.epoch) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Result of a fork.

    `lost_keys` were made after the backup: their secrets are gone. `new_key`: where no
    other was left to sign.
    """

    epoch: int
    lost: LostHistory
    lost_keys: Sequence[VerifierKey]
    retired_keys: Sequence[VerifierKey]
    new_key: VerifierKey | None


async def find_loss(connection: Connection, publication: Publication) -> LostHistory:
    """Find published entries that the database lacks.

    Raises NoForkError if none is lost, RefusalError.
    """
    keys, pinned = await read_keys(connection), _pinned(publication)
    if not keys:
        raise NoForkError("the log has no key yet: nothing of it was ever published")
    epochs = await read_epochs(connection)
    row = await (await connection.execute(SEAL["horizon"], binary=True)).fetchone()
    size = 0 if row is None else row[0]
    verifiers = [key.verifier for key in keys]
    # a key that the backup lacks may have signed what was lost; the last one names the log
    heads = await published_heads(
        publication, [*(key for key in pinned if key not in verifiers), *verifiers]
    )
    try:
        for head in heads:
            await _require_prefix(connection, head, size, epochs)
        root = await tree_root(connection, size)
    except MissingHashError as error:
        raise NoForkError(
            f"the log is incomplete: {error}; run `statesvc verify`, and restore again"
        ) from error
    lost = [head for head in heads if _is_beyond(head.checkpoint, size, epochs)]
    if not lost:
        raise NoForkError("nothing that was published is missing here: there is nothing to fork")
    return LostHistory(
        size=size,
        root=root,
        epochs=epochs,
        # the furthest: the store is up to an interval behind the file
        head=max(lost, key=lambda head: (head.checkpoint.epoch, head.checkpoint.size)),
    )


def _is_beyond(head: Checkpoint, size: int, epochs: Epochs) -> bool:
    return head.epoch > epochs.current or (head.epoch == epochs.current and head.size > size)


async def _require_prefix(
    connection: Connection, head: PublishedHead, size: int, epochs: Epochs
) -> None:
    signed = head.checkpoint
    if (
        signed.epoch == epochs.current
        and signed.size <= size
        and await tree_root(connection, signed.size) != signed.root
    ):
        raise NoForkError(
            f"{head.where} has {signed.size} entries that are not the first of this log: it went on"
            " since the restore, or was changed. Where they part is not known, so it cannot be"
            " forked: restore again, and keep the sealer stopped until it is forked"
        )


async def fork(
    connection: Connection, master: MasterKeys, publication: Publication, request: ForkRequest
) -> Fork:
    """Start the next epoch. `connection` is the owner's. Raises NoForkError, RefusalError."""
    # before the loss is looked for: a sealer at work would move the end of the log
    await _take_lead(connection)
    # before the lock below: it reads files and the store, which may take long
    lost = await find_loss(connection, publication)
    try:
        async with connection.transaction():
            # a writer that does not end must fail the fork, not queue every append behind it
            await connection.execute(_SQL["limit_waits"])
            await connection.execute(_SQL["close_to_writers"])
            return await _fork(connection, master, publication, request, lost)
    except psycopg.errors.LockNotAvailable as error:
        raise NoForkError(
            "a transaction that writes entries does not end: find it in pg_stat_activity, and try"
            " again"
        ) from error


async def _fork(
    connection: Connection,
    master: MasterKeys,
    publication: Publication,
    request: ForkRequest,
    lost: LostHistory,
) -> Fork:
    old = await (await begin_batch(connection)).rows()
    now = BatchStamp(old.recorded_at, old.batch_id, lost.next_epoch)
    # before the keys are read: the lost ones count as known from here on
    lost_keys = await _keep_lost_keys(connection, publication)
    keys = await read_keys(connection)
    retired = [
        key
        for key in keys
        if key.sealed_seed is not None and key.verifier.key_id in request.retired
    ]
    signers = open_signers(keys, master)
    new = (
        None
        if any(signer.verifier.key_id not in request.retired for signer in signers)
        else await make_key(connection, master)
    )
    # the published heads are those that the fork gives up: the log is held against itself alone
    sealed, head = await take_stock(
        connection, master, Publication(file=None, origin=publication.origin)
    )
    if sealed.tree.size > (0 if head is None else head.tree_size):
        # the backup ended between the two commits of a pass
        await publish(
            connection, sealed, signers, Publication(file=None, origin=publication.origin)
        )
    begins = {"epoch": now.epoch, "begins": lost.size, "started_at": now.recorded_at}
    await connection.execute(_SQL["start_epoch"], begins)
    actions = [_fork_action(request, lost), *_key_actions(request, retired, new)]
    leaf_hashes = await append_actions(connection, actions, now=now)
    await write_batch(
        connection,
        batch_id=now.batch_id,
        recorded_at=now.recorded_at,
        leaf_hashes=leaf_hashes,
        writer=request.actor,
    )
    # from this batch on: entries that wait come after the fork's, so every head of the epoch covers
    # it
    done = await seal(connection, replace(sealed, epoch=now.epoch), from_id=now.batch_id)
    # inside the transaction, to the file first: if the commit fails, the file's head lets no older
    # log lead
    await publish(connection, done.sealed, [*signers, *([] if new is None else [new])], publication)
    # after the head: they still sign the one that says that they are retired
    for key in retired:
        await retire_at_once(connection, key.verifier.key_id)
    # subscribers may know these sequences from the lost history, for another change
    await connection.execute(_SQL["begin_sequences_anew"], {"epoch": now.epoch})
    return Fork(
        epoch=now.epoch,
        lost=lost,
        lost_keys=lost_keys,
        retired_keys=[key.verifier for key in retired],
        new_key=None if new is None else new.verifier,
    )


def _fork_action(request: ForkRequest, lost: LostHistory) -> Action:
    head = lost.head.checkpoint
    details = {
        "why": request.why,
        "epoch": lost.next_epoch,
        "size": lost.size,
        "root": lost.root.hex(),
        "lost_epoch": head.epoch,
        "lost_size": head.size,
        "lost_root": head.root.hex(),
        "lost_checkpoint": lost.head.note,
    }
    return Action(actor=request.actor, verb=FORK, target="log", details=details)


def _key_actions(
    request: ForkRequest, retired: Sequence[SigningKey], new: NoteSigner | None
) -> list[Action]:
    why = {"why": f"log fork: {request.why}"}
    made = (
        []
        if new is None
        else [_key_action(request, ROTATE, new.verifier, {"key": str(new.verifier), **why})]
    )
    return made + [_key_action(request, RETIRE, key.verifier, why) for key in retired]


def _key_action(
    request: ForkRequest, verb: str, key: VerifierKey, details: dict[str, str]
) -> Action:
    return Action(
        actor=request.actor, verb=verb, target=f"log key {key.key_id.hex()}", details=details
    )


async def _keep_lost_keys(connection: Connection, publication: Publication) -> list[VerifierKey]:
    """Store keys that were made after the backup: heads that they signed are still verified with
    them.
    """
    known = {key.verifier for key in await read_keys(connection)}
    lost = [key for key in _pinned(publication) if key not in known]
    for key in lost:
        await connection.execute(
            _SQL["keep_lost_key"],
            {"key_id": key.key_id, "origin": key.name, "public_key": key.public_key},
        )
    return lost


def _pinned(publication: Publication) -> list[VerifierKey]:
    try:
        return [] if publication.keys_file is None else read_pinned_keys(publication.keys_file)
    except (OSError, NoteError) as error:
        raise NoForkError(
            f"the log's pinned keys in {publication.keys_file} cannot be used: {error}"
        ) from error


async def _take_lead(connection: Connection) -> None:
    """Take the lead: a sealer that refuses this log releases it at once, and checks
    again each half minute.
    """
    for _ in range(_LEAD_TRIES):
        row = await (await connection.execute(SEAL["lead"])).fetchone()
        if row is not None and row[0]:
            return
        await asyncio.sleep(_LEAD_SECONDS)
    raise NoForkError("a sealer is at work on this log: what it seals cannot be forked")
