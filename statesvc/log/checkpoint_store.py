"""Storage of checkpoints outside the database: each under epoch and size, never overwritten, and
the newest as `latest`.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from events.merkle.checkpoint import NoteError, read_checkpoint
from statesvc.database.data_dir import sync
from statesvc.files.object_path import NoObjectStoreError, client, open_bucket
from statesvc.settings.bucket import Bucket

P = ParamSpec("P")
T = TypeVar("T")
LATEST: Final = "latest"
_PROBE: Final = "probe"
_TIMEOUT_SECONDS: Final = 10


class CheckpointStoreError(RuntimeError):
    """The place cannot be read or written now; the message gives the reason."""


class ContradictedError(RuntimeError):
    """The store has another checkpoint of this size: two histories were signed, or the store
    belongs to another log.
    """


class CheckpointStore(Protocol):
    """A place for checkpoints. `name` is for people, without credentials."""

    @property
    def name(self) -> str: ...

    async def latest(self) -> str | None:
        """Return the newest note there; None while there is none. Raises CheckpointStoreError."""

    async def require_no_overwriting(self) -> None:
        """Try to write an object twice. Raises CheckpointStoreError where the place takes it."""

    async def keep(self, note: str) -> None:
        """Keep a note for ever, and as the newest.

        Raises CheckpointStoreError and ContradictedError.
        """

    async def add(self, name: str, text: str) -> None:
        """Store an object under a new name; an existing object stays.

        Raises CheckpointStoreError.
        """

    async def read_all(self, folder: str) -> list[str]:
        """Return all objects in a folder. Raises CheckpointStoreError."""


def checkpoint_store_at(place: str) -> CheckpointStore:
    """Open a folder, or `s3://bucket/prefix?endpoint=URL&region=NAME`.

    Raises CheckpointStoreError.
    """
    if "://" not in place:
        return FolderCheckpointStore(Path(place))
    try:
        return ObjectCheckpointStore(Bucket.parse(place))
    except (ValueError, NoObjectStoreError) as error:
        raise CheckpointStoreError(str(error)) from error


class FolderCheckpointStore:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = str(folder)

    async def latest(self) -> str | None:
        return await self._done("read", read_published, self._folder / LATEST)

    async def require_no_overwriting(self) -> None:
        """Return at once: a link never replaces an existing file."""

    async def keep(self, note: str) -> None:
        await self._done("written", self._keep, note)

    async def add(self, name: str, text: str) -> None:
        await self._done("written", self._add, self._folder / name, text)

    async def read_all(self, folder: str) -> list[str]:
        return await self._done("read", self._read_all, self._folder / folder)

    async def _done(self, act: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await asyncio.to_thread(work, *args, **kwargs)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise CheckpointStoreError(f"{self.name} cannot be {act}: {why}") from error

    def _add(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_published(path, text)

    def _read_all(self, folder: Path) -> list[str]:
        paths = sorted(folder.iterdir()) if folder.exists() else []
        return [path.read_text("utf-8") for path in paths if not path.name.startswith(".")]

    def _keep(self, note: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / stored_name(note)
        unfinished = self._folder / f".{path.name}.new.{os.getpid()}"
        write_published(unfinished, note)
        try:
            # a link, not a rename: what is there is never replaced
            path.hardlink_to(unfinished)
        except FileExistsError:
            _compare(path.read_text("utf-8"), note, self.name)
        finally:
            unfinished.unlink()
        # after the link: `latest` never names a checkpoint that is not kept under its own name
        if _is_newer(note, read_published(self._folder / LATEST)):
            write_published(self._folder / LATEST, note)


class ObjectCheckpointStore:
    """A bucket of an S3-compatible object store, by conditional requests."""

    def __init__(self, bucket: Bucket) -> None:
        self.name = str(bucket)
        self._obstore = client()
        self._store = open_bucket(bucket, timeout_seconds=_TIMEOUT_SECONDS)

    async def latest(self) -> str | None:
        found = await self._get(LATEST)
        return None if found is None else found[0]

    async def require_no_overwriting(self) -> None:
        # the first one is refused as well where an earlier start wrote it
        if await self._put(_PROBE, "", "create") and await self._put(_PROBE, "", "create"):
            raise CheckpointStoreError(
                f"{self.name} overwrites an object that was to be created once (it ignores"
                " `If-None-Match: *`): a second history would replace the first one there without"
                " a trace. Use a store that refuses it, or a folder"
            )

    async def keep(self, note: str) -> None:
        name = stored_name(note)
        if not await self._put(name, note, "create"):
            # compared, not trusted by its name: an object of the same size may be of another
            # history
            there = await self._get(name)
            if there is not None:
                _compare(there[0], note, self.name)
        found = await self._get(LATEST)
        if _is_newer(note, None if found is None else found[0]):
            # another writer in between has put a newer one, or will find ours; the
            # next pass checks again
            await self._put(LATEST, note, "create" if found is None else {"e_tag": found[1]})

    async def add(self, name: str, text: str) -> None:
        await self._put(name, text, "create")

    async def read_all(self, folder: str) -> list[str]:
        try:
            names = [
                each["path"]
                async for some in self._obstore.list(self._store, f"{folder}/")
                for each in some
            ]
        except (self._obstore.exceptions.BaseError, OSError) as error:
            raise CheckpointStoreError(
                f"{self.name} cannot be listed: {type(error).__name__}"
            ) from error
        found = [await self._get(name) for name in sorted(names)]
        return [each[0] for each in found if each is not None]

    async def _get(self, key: str) -> tuple[str, str | None] | None:
        try:
            answer = await self._obstore.get_async(self._store, key)
            body = await answer.bytes_async()
        except (FileNotFoundError, self._obstore.exceptions.NotFoundError):
            return None
        except (self._obstore.exceptions.BaseError, OSError) as error:
            raise CheckpointStoreError(
                f"{self.name} cannot be read: {type(error).__name__}"
            ) from error
        try:
            return bytes(body).decode(), answer.meta["e_tag"]
        except UnicodeDecodeError as error:
            raise CheckpointStoreError(
                f"{self.name}: what lies at {key} is no checkpoint"
            ) from error

    # a mode of obstore, which may be missing
    async def _put(self, key: str, note: str, mode: Any) -> bool:  # noqa: ANN401
        """Put an object; return False where something else is there."""
        try:
            await self._obstore.put_async(self._store, key, note.encode(), mode=mode)
        except (
            self._obstore.exceptions.AlreadyExistsError,
            self._obstore.exceptions.PreconditionError,
            FileExistsError,
        ):
            return False
        except (self._obstore.exceptions.BaseError, OSError) as error:
            raise CheckpointStoreError(
                f"{self.name} cannot be written: {type(error).__name__}"
            ) from error
        return True


def _compare(there: str, note: str, where: str) -> None:
    with suppress(NoteError):
        # signatures may differ, as after a rotation of keys: size and root are what was promised
        if read_checkpoint(there) == read_checkpoint(note):
            return
    raise ContradictedError(
        f"{where} has another checkpoint of {read_checkpoint(note).size} entries: two histories of"
        " this log were signed"
    )


def stored_name(note: str) -> str:
    """Return the name that a checkpoint is stored under: epoch and size."""
    return ".".join(map(str, _place(note)))


def _place(note: str) -> tuple[int, int]:
    checkpoint = read_checkpoint(note)
    return checkpoint.epoch, checkpoint.size


def _is_newer(note: str, latest: str | None) -> bool:
    if latest is None:
        return True
    try:
        return _place(note) > _place(latest)
    # an unreadable `latest` is replaced: it can be written again, the numbered ones are the record
    except NoteError:
        return True


def read_published(path: Path) -> str | None:
    """Return the note in the file; None where there is none yet."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None


def write_published(path: Path, note: str) -> None:
    """Replace the file durably and atomically, also across a crash. Raises OSError."""
    # beside it: a rename is atomic within a file system only
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, note.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    # after the fsync: a crash would otherwise leave the new name with no content
    unfinished.replace(path)
    # the rename itself is durable only with its folder
    sync(path.parent)
