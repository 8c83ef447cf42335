"""Every message taken, verbatim: a JSON object a line, compressed, with a checksum per batch.

A file is a sequence of gzip members, a batch each, so that `zcat` reads it. A batch ends with a
line that counts and hashes those before it, and is on the disk before its messages are
acknowledged. A file that ends within a batch was being written when its process died: those
messages were not acknowledged, and are taken again.
"""

import base64
import gzip
import hashlib
import os
import secrets
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from statesvc.addons.shovel.source_message import ShovelError, Taken, Transport
from statesvc.database.data_dir import sync

SUFFIX: Final = ".ndjson.gz"
_LEVEL: Final = 3


class BackupWriter:
    """One process's file in the folder, created with its first batch. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._batches = 0

    def append(self, messages: Sequence[Taken]) -> None:
        """Append messages durably."""
        file = self._file or self._open()
        lines = b"".join(orjson.dumps(_record(taken)) + b"\n" for taken in messages)
        self._batches += 1
        ending = {
            "batch": self._batches,
            "messages": len(messages),
            "sha256": hashlib.sha256(lines).hexdigest(),
        }
        file.write(gzip.compress(lines + orjson.dumps(ending) + b"\n", _LEVEL))
        file.flush()
        os.fsync(file.fileno())

    def close(self) -> None:
        """Close the file. Safe to call twice, and before the first batch."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open(self) -> BinaryIO:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}{SUFFIX}"
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        sync(self._folder)
        return self._file


def _record(taken: Taken) -> dict[str, object]:
    return {
        "transport": taken.transport.value,
        "queue": taken.queue,
        "exchange": taken.exchange,
        "routing_key": taken.routing_key,
        "properties": base64.b64encode(taken.properties).decode(),
        "body": base64.b64encode(taken.body).decode(),
    }


def check_folder(folder: Path) -> None:
    """Check that the folder is writable. Raises ShovelError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        trial = folder / f".{secrets.token_hex(4)}"
        trial.touch(mode=0o600, exist_ok=False)
        trial.unlink()
    except OSError as error:
        raise ShovelError(
            f"nothing can be written to the backup folder {folder}: {error.strerror}"
        ) from None


def backup_files(folder: Path) -> list[Path]:
    """Return the files in the order in which they were begun.

    Raises ShovelError where there are none.
    """
    files = sorted(folder.glob(f"*{SUFFIX}"))
    if not files:
        raise ShovelError(f"there is no backup in {folder}")
    return files


def read_backup(folder: Path) -> Iterator[list[Taken]]:
    """Yield every whole batch, checked. Raises ShovelError for a damaged batch."""
    for path in backup_files(folder):
        try:
            yield from _batches(path)
        except EOFError:
            continue
        except (gzip.BadGzipFile, zlib.error):
            raise ShovelError(f"{path.name} is damaged: it does not decompress") from None


def _batches(path: Path) -> Iterator[list[Taken]]:
    messages, digest = [], hashlib.sha256()
    with gzip.open(path) as file:
        for line in file:
            try:
                record: dict[str, Any] = orjson.loads(line)
                if "batch" not in record:
                    messages.append(_taken(record))
                    digest.update(line)
                    continue
            except (ValueError, KeyError, TypeError):
                raise ShovelError(f"{path.name} is damaged: it is not what was written") from None
            ending = {"messages": len(messages), "sha256": digest.hexdigest()}
            if record != {"batch": record["batch"], **ending}:
                raise ShovelError(
                    f"batch {record['batch']} of {path.name} is damaged: its checksum does not fit"
                )
            yield messages
            messages, digest = [], hashlib.sha256()


def _taken(record: dict[str, Any]) -> Taken:
    return Taken(
        transport=Transport(record["transport"]),
        queue=record["queue"],
        exchange=record["exchange"],
        routing_key=record["routing_key"],
        properties=base64.b64decode(record["properties"]),
        body=base64.b64decode(record["body"]),
    )
