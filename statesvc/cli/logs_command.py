"""`statesvc logs [FILE]`: log lines of the service as short lines for people.

From a file, standard input, or systemd's journal.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_line
from statesvc.telemetry.colour import shows_colour
from statesvc.telemetry.short_line import short_line

_LEVELS: Final = ("debug", "info", "warning", "error")
_JOURNAL: Final = ("journalctl", "--output", "cat", "--unit", "statesvc*")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        help="a file of log lines; default: standard input, else the journal of systemd",
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on with new lines of the journal"
    )
    parser.add_argument(
        "-n",
        "--lines",
        type=int,
        default=200,
        metavar="N",
        help="how many of the journal (default: %(default)s)",
    )
    parser.add_argument(
        "--level",
        choices=_LEVELS,
        default="info",
        help="only lines of this level and above (default: %(default)s)",
    )
    parser.add_argument(
        "--about",
        metavar="TEXT",
        help="only lines that name this: an event, a carrier, a process, an id",
    )


def run(options: argparse.Namespace) -> int:
    least, colour = _LEVELS.index(options.level), shows_colour(sys.stdout)
    with _lines(options) as lines:
        for line in lines:
            fields = _fields(line)
            if fields is None:
                write_line(line.rstrip("\n"))
            elif _rank(fields) >= least and (
                options.about is None or _names(fields, options.about)
            ):
                write_line(short_line(fields, colour=colour))
            sys.stdout.flush()
    return 0


@contextmanager
def _lines(options: argparse.Namespace) -> Iterator[Iterable[str]]:
    if options.file is not None:
        try:
            with options.file.open(encoding="utf-8", errors="replace") as opened:
                yield opened
        except OSError as error:
            raise CommandError(f"{options.file}: {error.strerror}", exit_code=2) from error
    elif not sys.stdin.isatty():
        yield sys.stdin
    elif shutil.which(_JOURNAL[0]) is None:
        raise CommandError(
            "name a file of log lines, or pipe them in: `docker logs statesvc 2>&1 | statesvc logs`",
            exit_code=2,
        )
    else:
        command = [
            *_JOURNAL,
            "--lines",
            str(options.lines),
            *(("--follow",) if options.follow else ()),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as journal:  # noqa: S603 - systemd's own program
            yield journal.stdout or ()


def _fields(line: str) -> Mapping[str, Any] | None:
    """Parse a line; None: not of the service."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return fields if isinstance(fields, dict) and "event" in fields else None


def _rank(fields: Mapping[str, Any]) -> int:
    level = str(fields.get("level"))
    return _LEVELS.index(level) if level in _LEVELS else len(_LEVELS)


def _names(fields: Mapping[str, Any], text: str) -> bool:
    return any(text in str(value) for value in fields.values())
