"""`statesvc backup check`: gaps that a restore would have. Exits with 1 if there are any."""

import argparse
import asyncio
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from statesvc.addons.backups.backup_checks import (
    check_backup,
    check_base_backups,
    unknown_base_backups,
)
from statesvc.cli.doctor.doctor import write_findings
from statesvc.cli.session import service_connection
from statesvc.health.finding import Finding, fail
from statesvc.settings.service_settings import Settings, load_settings

_MANIFEST: Final = "backup_manifest"
_LOGS: Final = ("--log-level-console=off", "--log-level-file=off", "--log-level-stderr=error")
_ANSWER_SECONDS: Final = 60


class BaseBackupError(RuntimeError):
    """Base backups cannot be read; the message has the reason."""


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    checking = commands.add_parser(
        "check", help="check what a restore would lack; exit code 1 if anything"
    )
    where = checking.add_mutually_exclusive_group()
    where.add_argument(
        "--stanza",
        metavar="NAME",
        help="whose base backups pgBackRest lists, which must be installed here",
    )
    where.add_argument(
        "--base-backups",
        type=Path,
        metavar="FOLDER",
        help="where pg_basebackup puts them, or a folder of such folders",
    )
    checking.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    settings = load_settings()
    findings = [*asyncio.run(_findings(settings)), *_base_backups(options, settings)]
    return write_findings(findings, as_json=options.json)


async def _findings(settings: Settings) -> list[Finding]:
    async with service_connection(settings) as connection:
        return [finding async for finding in check_backup(connection, settings)]


def _base_backups(options: argparse.Namespace, settings: Settings) -> Iterator[Finding]:
    if options.stanza is None and options.base_backups is None:
        if settings.keys.backup_provider_days is not None:
            return
        yield unknown_base_backups()
        return
    try:
        ended = (
            in_stanza(options.stanza)
            if options.stanza is not None
            else in_folder(options.base_backups)
        )
    except BaseBackupError as error:
        yield fail("base backup", str(error))
        return
    yield from check_base_backups(
        ended, now=datetime.now(UTC), backup_days=settings.keys.backup_days
    )


def in_folder(folder: Path) -> Sequence[datetime]:
    """Return when the backups in the folder ended, oldest first. Raises BaseBackupError.

    pg_basebackup writes the manifest last.
    """
    try:
        manifests = [
            path
            for path in (folder / _MANIFEST, *(each / _MANIFEST for each in folder.iterdir()))
            if path.exists()
        ]
        return sorted(datetime.fromtimestamp(path.stat().st_mtime, UTC) for path in manifests)
    except OSError as error:
        raise BaseBackupError(f"{folder} cannot be read: {error.strerror}") from error


def in_stanza(name: str, *, program: str = "pgbackrest") -> Sequence[datetime]:
    """Return when those of the stanza ended, oldest first. Raises BaseBackupError."""
    command = [program, f"--stanza={name}", "--output=json", *_LOGS, "info"]
    try:
        # no shell, a name of the operator's
        ended = subprocess.run(  # noqa: S603
            command, capture_output=True, check=True, timeout=_ANSWER_SECONDS
        )
    except FileNotFoundError as error:
        raise BaseBackupError(f"{program} is not installed here: run this where it is") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").partition("\n")[0]
        raise BaseBackupError(f"`{program} --stanza={name} info` failed: {said}") from error
    except subprocess.TimeoutExpired as error:
        raise BaseBackupError(
            f"`{program} --stanza={name} info` did not end within {_ANSWER_SECONDS} s"
        ) from error
    return stanza_times(ended.stdout, name)


def stanza_times(answer: bytes, name: str) -> Sequence[datetime]:
    """Parse the output of `pgbackrest info --output=json`.

    Raises BaseBackupError if the stanza has a fault.
    """
    try:
        found: Any = next((each for each in orjson.loads(answer) if each["name"] == name), None)
        if found is None or found["status"]["code"] != 0:
            why = "is not there" if found is None else found["status"]["message"]
            raise BaseBackupError(f"pgBackRest says of stanza {name}: {why}")
        return sorted(
            datetime.fromtimestamp(each["timestamp"]["stop"], UTC)
            for each in found["backup"]
            if not each.get("error")
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BaseBackupError(
            f"pgBackRest's answer about stanza {name} is not understood ({type(error).__name__})"
        ) from error
