"""`statesvc keys ...`: API keys, and the keys of the log, as declared.

`rotate-master | inbox | rotate-log | retire-log` are in `installation_keys`.
"""

import argparse
from operator import itemgetter
from typing import Any

from statesvc.cli import declared
from statesvc.cli.api_calls import Calls
from statesvc.cli.command_error import CommandError
from statesvc.cli.id_prefix import one_beginning_with
from statesvc.cli.operation_table import operation_named
from statesvc.cli.service_calls import calls_afar


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    declared.add_declared(commands, "keys")
    rotate = commands.add_parser(
        "rotate-master", help="seal everything again under the first key of STATESVC_MASTER_KEY"
    )
    rotate.add_argument("--json", action="store_true", help="for scripts")
    inbox = commands.add_parser(
        "inbox", help="role, address and inbox key for the workers of another fleet"
    )
    inbox.add_argument(
        "--role",
        default="old_fleet",
        help="the role in the database, which gets a new password (default: %(default)s)",
    )
    inbox.add_argument("--json", action="store_true", help="for scripts")
    _configure_log_keys(commands)


def run(options: argparse.Namespace) -> int:
    if hasattr(options, "declared"):
        return declared.run(options, complete_ids=_complete_ids)
    if calls_afar(options):
        raise CommandError(
            f"keys {options.action} works on the service's own machine: it calls no service",
            exit_code=2,
        )
    from statesvc.cli.installation_keys import run as run_here  # noqa: PLC0415 - loads the database driver

    return run_here(options)


async def _complete_ids(calls: Calls, options: argparse.Namespace) -> None:
    if hasattr(options, "key_id"):
        keys = (await declared.whole(calls, operation_named("list_api_keys"), {}))["items"]
        found = one_beginning_with(options.key_id, keys, name=itemgetter("key_id"), what="key")
        options.key_id = found["key_id"]


def _configure_log_keys(commands: Any) -> None:  # noqa: ANN401 - argparse has no public name for it
    """Add `rotate-log | retire-log`: the keys that sign the log's checkpoints."""
    rotating = commands.add_parser(
        "rotate-log", help="make a new key, which signs checkpoints alongside the old one"
    )
    rotating.add_argument("--why", default="", help="recorded in the log")
    rotating.add_argument("--json", action="store_true", help="for scripts")
    retiring = commands.add_parser(
        "retire-log", help="have an older key of the log sign no more; its secret is destroyed"
    )
    retiring.add_argument("id", type=_key_id, help="its key id, 8 hexadecimal digits")
    retiring.add_argument("--why", default="", help="recorded in the log")
    retiring.add_argument("--json", action="store_true", help="for scripts")


def _key_id(text: str) -> bytes:
    try:
        key_id = bytes.fromhex(text)
    except ValueError:
        key_id = b""
    if len(key_id) != 4:
        raise argparse.ArgumentTypeError("a key id has 8 hexadecimal digits")
    return key_id
