"""`statesvc keys log | rotate-log | retire-log`: the keys that sign the log's checkpoints."""

import argparse
from typing import Any

from psycopg import AsyncConnection

from statesvc.cli.command_error import CommandError
from statesvc.cli.operator import actor
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.log.signing_keys import read_keys, retire, rotate
from statesvc.roles.master_key import open_master_keys
from statesvc.settings.service_settings import load_settings

ACTIONS = ("log", "rotate-log", "retire-log")


def configure(commands: Any) -> None:  # noqa: ANN401 - argparse has no public name for it
    """Adds them to the subcommands of `keys`."""
    listing = commands.add_parser("log", help="the public keys of the log's checkpoints, to be kept by whoever verifies it")
    listing.add_argument("--json", action="store_true", help="for scripts")
    rotating = commands.add_parser("rotate-log", help="make a new key, which signs checkpoints beside the old one")
    rotating.add_argument("--why", default="", help="stands in the log")
    retiring = commands.add_parser("retire-log", help="have an older key of the log sign no more; its secret is destroyed")
    retiring.add_argument("id", type=_key_id, help="its key id, 8 hexadecimal digits")
    retiring.add_argument("--why", default="", help="stands in the log")


async def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    settings = load_settings()
    async with service_connection(settings) as connection:
        match options.action:
            case "log":
                await _list(connection, as_json=options.json)
            case "rotate-log":
                async with connection.transaction():
                    key = await rotate(connection, await open_master_keys(settings, connection), actor=actor(), why=options.why)
                write_line(str(key))
            case _:
                async with connection.transaction():
                    await retire(connection, options.id, actor=actor(), why=options.why)
                write_line("retired; it signs no more")
    return 0


async def _list(connection: AsyncConnection[Any], *, as_json: bool) -> None:
    keys = await read_keys(connection)
    if not keys:
        raise CommandError("the log has no key yet: the sealer makes it when it starts")
    if as_json:
        write_json(
            [
                {
                    "id": key.verifier.key_id.hex(),
                    "key": str(key.verifier),
                    "created_at": key.created_at.isoformat(),
                    "retired_at": key.retired_at.isoformat() if key.retired_at else None,
                }
                for key in keys
            ]
        )
        return
    write_table(
        ("ID", "CREATED", "RETIRED", "KEY"),
        [
            (
                key.verifier.key_id.hex(),
                f"{key.created_at:%Y-%m-%d %H:%M}",
                f"{key.retired_at:%Y-%m-%d %H:%M}" if key.retired_at else None,
                key.verifier,
            )
            for key in keys
        ],
    )


def _key_id(text: str) -> bytes:
    try:
        key_id = bytes.fromhex(text)
    except ValueError:
        key_id = b""
    if len(key_id) != 4:
        raise argparse.ArgumentTypeError("a key id has 8 hexadecimal digits")
    return key_id
