"""`statesvc runbook [PAGE]`: the pages that `status`, the console and the alerts name."""

import argparse
import re
from typing import Final

from statesvc.cli.command_error import CommandError
from statesvc.cli.command_parser import meant
from statesvc.cli.output import write_line, write_table
from statesvc.cli.presentation import paint
from statesvc.runbook import INDEX, pages, read, title
from statesvc.telemetry.colour import Colour

_MARKED: Final = re.compile(r"(?m)^(#+ .*)$|(\*\*[^*]+\*\*)")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "page",
        nargs="?",
        metavar="PAGE",
        help="a page, such as RoleDown; without it, all are listed",
    )


def run(options: argparse.Namespace) -> int:
    if options.page is None:
        write_table(("PAGE", ""), [(name, title(name)) for name in pages() if name != INDEX])
        return 0
    name = next(
        (name for name in pages() if name.lower() == options.page.lower().removesuffix(".md")), None
    )
    if name is None:
        raise CommandError(
            "the runbook has no page"
            f" {options.page!r}{meant('statesvc runbook', options.page, pages())}",
            exit_code=2,
        )
    write_line(_MARKED.sub(lambda marked: paint(marked[0], Colour.BOLD), read(name).rstrip("\n")))
    return 0
