"""Which dead letters a command means: by id, or by carrier, cause, kind and time."""

import argparse
from typing import Any, Protocol, get_args
from uuid import uuid4

from events.carriers import CARRIERS
from events.errors import Cause
from statesvc.cli.arguments import rfc3339_time
from statesvc.cli.command_error import CommandError
from statesvc.cli.session import actor
from statesvc.repair.dead_letters.dead_letter import DeadLetterKind, Filter
from statesvc.repair.dead_letters.put_back import Order


class Subcommands(Protocol):
    """What argparse calls a special action."""

    def add_parser(self, name: str, **arguments: Any) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse's own
        """One more subcommand."""


def add_filter(parser: argparse.ArgumentParser) -> None:
    """The options of a filter."""
    parser.add_argument("--carrier", help="of this carrier only")
    parser.add_argument("--cause", choices=[cause.value for cause in Cause], metavar="CAUSE", help="of this cause only")
    parser.add_argument("--kind", choices=get_args(DeadLetterKind), help="of this kind only")
    parser.add_argument("--since", type=rfc3339_time, metavar="T", help="buried since then, RFC 3339")
    parser.add_argument("--until", type=rfc3339_time, metavar="T", help="buried before then, RFC 3339")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Ids, or a filter."""
    parser.add_argument("ids", nargs="*", type=int, metavar="ID", help="of these letters; or of a filter:")
    add_filter(parser)


def filter_of(options: argparse.Namespace, *, is_open: bool | None = None) -> Filter:
    """The filter that the options state."""
    return Filter(
        kind=options.kind,
        carrier_id=options.carrier,
        cause=options.cause,
        since=options.since,
        until=options.until,
        is_open=is_open,
    )


def order_of(options: argparse.Namespace) -> Order:
    """What to act on. Never on everything by mistake."""
    wanted = filter_of(options)
    if options.ids and wanted != Filter():
        raise CommandError("name letters by their ids, or by a filter, not both", exit_code=2)
    if not options.ids and wanted.carrier_id is None and wanted.cause is None and wanted.kind is None:
        raise CommandError("name the letters: ids, or --carrier, --cause, --kind", exit_code=2)
    return Order(
        wanted=wanted,
        ids=tuple(options.ids) or None,
        carriers=frozenset(CARRIERS),
        actor=actor(),
        why=options.why,
        run_id=uuid4(),
    )
