"""`statesvc init [FILE]`: write all settings, commented out, with default and meaning."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType

from statesvc import __version__
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_line
from statesvc.settings.known_settings import DocumentedSetting, documented_settings
from statesvc.settings.service_settings import ArchiveSettings
from statesvc.settings.variable_names import variable_of

WIDTH = 118
HEAD = f"""\
# Settings of statesvc {__version__}, written by `statesvc init`: what is commented out has the
# default that it shows.
#
#   statesvc --env-file FILE up        also systemd (EnvironmentFile=) and Docker (--env-file) read
# it
#
# A line is NAME=value: no quotes, no backslashes, no `export`. What the environment sets wins. A
# misspelt name is refused. It may hold secrets: leave it readable for its owner alone.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--archive",
        metavar="PLACE",
        help=(
            "a folder, or s3://bucket/prefix: bodies and months of the log go there. Asked for on a"
            " terminal; empty: none"
        ),
    )
    parser.add_argument(
        "--spool",
        metavar="URL",
        help=(
            "nats://host/STREAM, or file:///folder on this machine: webhooks are kept there while"
            " the database is away. Asked for on a terminal; empty: none"
        ),
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        nargs="?",
        default=Path("statesvc.env"),
        help="the file to write (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the file; an existing file stays as it is."""
    file: Path = options.file
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CommandError(f"{file} exists and stays as it is: name another file") from None
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from None
    archive = options.archive if options.archive is not None else _asked_archive()
    spool = options.spool if options.spool is not None else _asked_spool()
    chosen = _archive_settings(archive) | ({"STATESVC_SPOOL_URL": spool} if spool else {})
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write(settings_file(documented_settings(), chosen=chosen))
    if not archive and "DATABASE_URL" in os.environ:
        write_line("no archive: everything stays in the database for good (STATESVC_ARCHIVE_DIR)")
    write_line(f"{file}: edit it, then `statesvc --env-file {file} up`")
    return 0


def _asked_archive() -> str:
    """Ask somebody at a terminal; a script is not asked."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return ""
    return input(
        "Archive for bodies and months of the log (a folder or s3://bucket/prefix; empty: none): "
    ).strip()


def _asked_spool() -> str:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return ""
    proposed = f"file://{Path.cwd()}/spool"
    asked = f"Spool for webhooks while the database is away (empty: {proposed}; none: none): "
    answer = input(asked).strip()
    return "" if answer == "none" else answer or proposed


def _archive_settings(place: str) -> dict[str, str]:
    if not place:
        return {}
    return {
        variable_of(ArchiveSettings, name, ArchiveSettings.model_fields[name]): value
        for name, value in (("dir", place), ("log_hot_months", "1"))
    }


def settings_file(
    settings: Iterable[DocumentedSetting], *, chosen: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the text of the file: sections with their settings, in the order given.

    `chosen`: values that are not commented out.
    """
    return HEAD + "".join(f"{line}\n" for line in _lines(settings, chosen))


def _lines(settings: Iterable[DocumentedSetting], chosen: Mapping[str, str]) -> Iterator[str]:
    for section, members in groupby(settings, key=lambda setting: setting.section):
        yield ""
        yield f"## {section}"
        for setting in members:
            yield from (
                f"# {line}"
                for line in wrap(
                    setting.meaning,
                    WIDTH,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )
            if setting.variable in chosen:
                yield f"{setting.variable}={chosen[setting.variable]}"
                continue
            yield f"#{setting.variable.replace('<CARRIER>', 'UPS')}={_text_of(setting.default)}"


def _text_of(default: object) -> str:
    match default:
        case None | () | frozenset():
            return ""
        case bool():
            return str(default).lower()
        case _:
            return str(default)
