"""`statesvc shovel --from URL --queue Q --mapping FILE --backup DIR`: messages of another broker into the inbox, and back.

docs/shovel.md leads through a migration.
"""

import argparse
from pathlib import Path

from statesvc.cli.command_error import CommandError

_PROCESSES_MAX = 64


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--from", dest="source", metavar="URL", help="amqp://user:password@host/vhost, redis://host/0, or a file of JSON lines"
    )
    parser.add_argument("--queue", action="append", default=[], metavar="NAME", help="a queue to take from; may be given again")
    parser.add_argument(
        "--delayed", nargs="?", const="", metavar="PREFIX", help="take from the queues of Celery's native delayed delivery as well"
    )
    parser.add_argument("--mapping", type=Path, metavar="FILE", help="which task is which carrier's message, in TOML")
    parser.add_argument("--backup", type=Path, metavar="DIR", help="a folder for every message as it came")
    parser.add_argument("--until-empty", action="store_true", help="end when nothing waits (default: go on)")
    parser.add_argument("--batch", type=_positive, default=500, metavar="N", help="messages a transaction (default: %(default)s)")
    parser.add_argument(
        "--prefetch", type=_positive, metavar="N", help="messages handed over in advance to each process (default: 2 batches)"
    )
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Takes, explains, pauses or returns, as the options say."""
    try:
        from statesvc.cli import shovel_runs  # noqa: PLC0415 - loads the clients of brokers, which are an extra
    except ModuleNotFoundError as error:
        if error.name in {"aiormq", "pamqp", "redis", "aio_pika"}:
            raise CommandError("the clients of brokers are not installed: pip install 'statesvc[shovel]'", exit_code=2) from None
        raise
    return shovel_runs.run(options)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return int(text)
