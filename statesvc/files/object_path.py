"""A file of an archive in an object store: the part of `pathlib.Path` that the archives use.

A file is read in ranges: a day of bodies or a month of the log is far larger than the part that a
query needs.
"""

import errno
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, Final, Self

from statesvc.files.archive_errors import UnreadableArchiveError
from statesvc.settings.bucket import Bucket

if TYPE_CHECKING:
    from obstore.store import S3Store

_TIMEOUT_SECONDS: Final = 120
# Bytes of a part of an upload: S3 takes 10,000 parts, so a file may have 320 GB.
_PART_BYTES: Final = 32 << 20
_PARTS_AT_ONCE: Final = 2
_BLOCK_BYTES: Final = 256 << 10


class ObjectStoreError(UnreadableArchiveError, OSError):
    """The object store gave an unexpected answer: the state of the file is unknown."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.what = what
        self.why = why
        self.errno = errno.EIO
        self.strerror = why

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.why)


@dataclass(frozen=True, slots=True, order=True)
class ObjectPath:
    """The object `name` in a bucket's folder, or with no name the folder itself.

    Raises as a path does, and ObjectStoreError.
    """

    bucket: Bucket
    name: str = ""

    def __truediv__(self, name: str) -> Self:
        return replace(self, name=name)

    def __str__(self) -> str:
        return "/".join(filter(None, (str(self.bucket), self.name)))

    def with_name(self, name: str) -> Self:
        return replace(self, name=name)

    def size(self) -> int:
        with self._asking():
            return int(client().head(self._store(), self.name)["size"])

    def version(self) -> tuple[object, ...]:
        """Return a value that differs where the object was replaced."""
        with self._asking():
            found = client().head(self._store(), self.name)
            return found["size"], found["e_tag"], found["last_modified"]

    def exists(self) -> bool:
        try:
            self.size()
        except FileNotFoundError:
            return False
        return True

    def open(self, _mode: str = "rb") -> IO[bytes]:
        # the next read is often adjacent; one that is longer goes to the store as it is
        return io.BufferedReader(_ObjectReader(self), _BLOCK_BYTES)

    def read_range(self, begin: int, length: int) -> bytes:
        """Read some bytes; the caller knows that they are there."""
        with self._asking():
            return bytes(client().get_range(self._store(), self.name, start=begin, length=length))

    def delete(self) -> None:
        """Delete it; an object that is gone already is fine."""
        with self._asking():
            client().delete(self._store(), self.name)

    def iterdir(self) -> Iterator["ObjectPath"]:
        with self._asking():
            yield from [
                self / each["path"] for some in client().list(self._store()) for each in some
            ]

    def sizes(self) -> dict[str, int]:
        with self._asking():
            return {
                each["path"]: int(each["size"])
                for some in client().list(self._store())
                for each in some
            }

    def write_bytes(self, content: bytes) -> None:
        with self._asking():
            client().put(self._store(), self.name, content)

    def upload(self, source: Path) -> None:
        """Upload the file atomically."""
        with self._asking():
            client().put(
                self._store(),
                self.name,
                source,
                chunk_size=_PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )

    def _store(self) -> "S3Store":
        return open_bucket(self.bucket, timeout_seconds=_TIMEOUT_SECONDS)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            exceptions = client().exceptions
        except NoObjectStoreError as error:
            raise ObjectStoreError(str(self), str(error)) from error
        try:
            yield
        except (FileNotFoundError, exceptions.NotFoundError) as error:
            raise FileNotFoundError(errno.ENOENT, "no such object", self.name) from error
        except exceptions.BaseError as error:
            raise ObjectStoreError(
                str(self), f"the object store did not answer as it should ({type(error).__name__})"
            ) from error


class _ObjectReader(io.RawIOBase):
    def __init__(self, path: ObjectPath) -> None:
        super().__init__()
        self._path = path
        self._size = path.size()
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    # what has a buffer has no type in 3.11
    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401
        wanted = max(0, min(len(buffer), self._size - self._at))
        buffer[:wanted] = self._path.read_range(self._at, wanted) if wanted else b""
        self._at += wanted
        return wanted


if TYPE_CHECKING:
    from obstore.store import S3Store

_TRIES: Final = 2


class NoObjectStoreError(RuntimeError):
    """obstore is not installed."""

    def __str__(self) -> str:
        return "an s3:// place needs the extra: pip install 'statesvc[objectstore]'"


@lru_cache
def open_bucket(bucket: Bucket, *, timeout_seconds: int) -> "S3Store":
    """Return the bucket's store, without a request. Raises NoObjectStoreError.

    `timeout_seconds`: of one request with its body.
    """
    client()
    from obstore.store import S3Store  # noqa: PLC0415 - an extra

    return S3Store(bucket.name, prefix=bucket.prefix or None, **_options(bucket, timeout_seconds))


def _options(bucket: Bucket, timeout_seconds: int) -> dict[str, Any]:
    options: dict[str, Any] = {
        "region": bucket.region,
        "client_options": {
            "allow_http": bucket.endpoint.startswith("http://"),
            "timeout": f"{timeout_seconds}s",
        },
        "retry_config": {"max_retries": _TRIES},
    }
    return options | {"endpoint": bucket.endpoint} if bucket.endpoint else options


def client() -> ModuleType:
    """Import obstore. Raises NoObjectStoreError."""
    try:
        import obstore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise NoObjectStoreError from error
    return obstore
