"""`statesvc shovel --from URL --queue Q --mapping FILE --backup DIR`: messages of another broker
into the inbox, and back.

docs/shovel.md leads through a migration.
"""

import argparse
from pathlib import Path
from typing import Final

from statesvc.cli.arguments import positive
from statesvc.cli.command_error import CommandError

_CLIENTS: Final = frozenset({"aiormq", "aio_pika", "pamqp", "redis"})


def configure(parser: argparse.ArgumentParser) -> None:
    source = parser.add_argument_group("what is taken")
    source.add_argument(
        "--from",
        dest="source",
        metavar="URL",
        help=(
            "amqp://user:password@host/vhost, redis://host/0, env:NAME for one that the environment"
            " holds, or a file of JSON lines"
        ),
    )
    source.add_argument(
        "--queue",
        action="append",
        default=[],
        metavar="NAME",
        help="a queue to take from; may be given again",
    )
    source.add_argument(
        "--delayed",
        nargs="?",
        const="",
        metavar="PREFIX",
        help="take from Celery's native delayed delivery as well (RabbitMQ)",
    )
    become = parser.add_argument_group("what becomes of it")
    become.add_argument(
        "--mapping",
        type=Path,
        metavar="FILE",
        help="which task is which carrier's message, in TOML",
    )
    become.add_argument(
        "--backup", type=Path, metavar="DIR", help="a folder for every message as it came"
    )
    become.add_argument(
        "--no-notify",
        action="store_true",
        help="send no subscription what the messages change: for the import of a history",
    )
    become.add_argument("--dry-run", action="store_true", help="count and classify, take nothing")
    become.add_argument(
        "--sample",
        type=positive,
        default=10_000,
        metavar="N",
        help="messages that a dry run classifies (%(default)s)",
    )
    back = parser.add_argument_group("the way back")
    back.add_argument(
        "--to",
        metavar="URL",
        help="return what was taken and not processed to this broker, from the backup",
    )
    back.add_argument(
        "--restore",
        action="store_true",
        help="take everything from the backup: into the inbox, or with --to into the broker",
    )
    pace = parser.add_argument_group("how")
    pace.add_argument(
        "--until-empty", action="store_true", help="end when nothing waits (default: go on)"
    )
    pace.add_argument(
        "--processes",
        type=positive,
        metavar="N",
        help="ignored since 0.2, and refused from 0.4 on: one process takes the messages",
    )
    pace.add_argument(
        "--rate",
        type=_rate,
        metavar="N",
        help="at most N messages a second (default: as fast as it goes)",
    )
    pace.add_argument(
        "--batch",
        type=positive,
        default=500,
        metavar="N",
        help="messages per transaction (%(default)s)",
    )
    pace.add_argument(
        "--prefetch",
        type=positive,
        metavar="N",
        help="messages handed over in advance (two batches)",
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Take, count or return, as the options say."""
    try:
        # loads the clients of brokers, which are an extra
        from statesvc.addons.shovel import shovel_runs  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in _CLIENTS:
            raise CommandError(
                "the clients of brokers are not installed: pip install 'statesvc[shovel]'",
                exit_code=2,
            ) from None
        raise
    return shovel_runs.run(options)


def _rate(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a number") from None
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return found
