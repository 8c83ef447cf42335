"""When base backups were taken: what pg_basebackup left in a folder, and what pgBackRest says of a stanza."""

import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

_MANIFEST: Final = "backup_manifest"
_LOGS: Final = ("--log-level-console=off", "--log-level-file=off", "--log-level-stderr=error")
_ANSWER_SECONDS: Final = 60


class BaseBackupError(RuntimeError):
    """Where base backups lie cannot be read; the message says why."""


def in_folder(folder: Path) -> Sequence[datetime]:
    """When those in the folder ended, oldest first: pg_basebackup writes the manifest last. Raises BaseBackupError."""
    try:
        manifests = [path for path in (folder / _MANIFEST, *(each / _MANIFEST for each in folder.iterdir())) if path.exists()]
        return sorted(datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in manifests)
    except OSError as error:
        raise BaseBackupError(f"{folder} cannot be read: {error.strerror}") from error


def in_stanza(name: str, *, program: str = "pgbackrest") -> Sequence[datetime]:
    """When those of the stanza ended, oldest first. Raises BaseBackupError."""
    command = [program, f"--stanza={name}", "--output=json", *_LOGS, "info"]
    try:
        ended = subprocess.run(command, capture_output=True, check=True, timeout=_ANSWER_SECONDS)  # noqa: S603 - no shell, a name of the operator's
    except FileNotFoundError as error:
        raise BaseBackupError(f"{program} is not installed here: run this where it is") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").partition("\n")[0]
        raise BaseBackupError(f"`{program} --stanza={name} info` failed: {said}") from error
    except subprocess.TimeoutExpired as error:
        raise BaseBackupError(f"`{program} --stanza={name} info` did not end within {_ANSWER_SECONDS} s") from error
    return stanza_times(ended.stdout, name)


def stanza_times(answer: bytes, name: str) -> Sequence[datetime]:
    """Of what `pgbackrest info --output=json` printed. Raises BaseBackupError where the stanza is not well."""
    try:
        found: Any = next((each for each in orjson.loads(answer) if each["name"] == name), None)
        if found is None or found["status"]["code"] != 0:
            why = "is not there" if found is None else found["status"]["message"]
            raise BaseBackupError(f"pgBackRest says of stanza {name}: {why}")
        return sorted(datetime.fromtimestamp(each["timestamp"]["stop"], UTC) for each in found["backup"] if not each.get("error"))
    except (KeyError, TypeError, ValueError) as error:
        raise BaseBackupError(f"pgBackRest's answer about stanza {name} is not understood ({type(error).__name__})") from error
