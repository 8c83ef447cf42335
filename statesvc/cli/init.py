"""`statesvc init [FILE]`: a file of all settings, each commented out with its default and its meaning."""

import argparse
import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from statesvc import __version__
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_line
from statesvc.settings.known_settings import DocumentedSetting, documented_settings

WIDTH = 118
HEAD = f"""\
# Settings of statesvc {__version__}, written by `statesvc init`: what is commented out has the default that it shows.
#
#   statesvc --env-file FILE up        also systemd (EnvironmentFile=) and Docker (--env-file) read it
#
# A line is NAME=value: no quotes, no backslashes, no `export`. What the environment sets wins. A misspelt name is refused.
# It may hold secrets: leave it readable for its owner alone.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?", default=Path("statesvc.env"), help="the file to write (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Writes the file; one that is there stays as it is."""
    file: Path = options.file
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CommandError(f"{file} exists and stays as it is: name another file") from None
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write(settings_file(documented_settings()))
    write_line(f"{file}: edit it, then `statesvc --env-file {file} up`")
    return 0


def settings_file(settings: Iterable[DocumentedSetting]) -> str:
    """The text of the file: sections with their settings, in the order given."""
    return HEAD + "".join(f"{line}\n" for line in _lines(settings))


def _lines(settings: Iterable[DocumentedSetting]) -> Iterator[str]:
    for section, members in groupby(settings, key=lambda setting: setting.section):
        yield ""
        yield f"## {section}"
        for setting in members:
            yield from (
                f"# {line}" for line in wrap(" ".join(setting.meaning.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
            )
            yield f"#{setting.variable.replace('<CARRIER>', 'UPS')}={_text_of(setting.default)}"


def _text_of(default: object) -> str:
    match default:
        case None | () | frozenset():
            return ""
        case bool():
            return str(default).lower()
        case _:
            return str(default)
