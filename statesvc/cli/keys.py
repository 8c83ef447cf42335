"""`statesvc keys create | list | revoke | rotate-master | log | rotate-log | retire-log`."""

import argparse
import asyncio
from dataclasses import asdict

from statesvc.cli import log_keys
from statesvc.cli.command_error import CommandError
from statesvc.cli.operator import actor
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.progress import show_progress
from statesvc.cli.session import connect, running_database, service_connection
from statesvc.database.keyring_store import load_keyring
from statesvc.http.key_store import create_key, list_keys, revoke_key
from statesvc.http.scope import Scope
from statesvc.repair.key_rotation import rewrap_root_key, rotate
from statesvc.roles.master_key import key_sources, open_sources
from statesvc.settings.service_settings import load_settings


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="create | list | revoke | rotate-master | ...")
    create = commands.add_parser("create", help="make a key; it is shown once")
    create.add_argument("--name", required=True, help="who uses it")
    create.add_argument("--scopes", required=True, type=_scopes, help=f"comma-separated, of {', '.join(scope.value for scope in Scope)}")
    create.add_argument("--json", action="store_true", help="for scripts")
    listing = commands.add_parser("list", help="all keys, without the keys themselves")
    listing.add_argument("--json", action="store_true", help="for scripts")
    revoke = commands.add_parser("revoke", help="end a key; in effect within 5 s")
    revoke.add_argument("id", help="the key's id")
    rotate = commands.add_parser("rotate-master", help="seal everything again under the first key of STATESVC_MASTER_KEY")
    rotate.add_argument("--json", action="store_true", help="for scripts")
    log_keys.configure(commands)


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    if options.action in log_keys.ACTIONS:
        return asyncio.run(log_keys.run(options))
    return asyncio.run(_rotate(options) if options.action == "rotate-master" else _run(options))


async def _rotate(options: argparse.Namespace) -> int:
    settings = load_settings()
    async with running_database(settings) as dsns, await connect(dsns.owner) as connection:
        sources = key_sources(settings)
        keyring = await load_keyring(connection, await open_sources(sources, connection, make=True))
        rewrapped = sources.kms is not None and await rewrap_root_key(connection, sources.kms)
        rotated = await rotate(
            connection,
            keyring,
            actor=actor(),
            progress=lambda done, total: show_progress(done, total, "shipments"),
            root_keys=int(rewrapped),
        )
    if options.json:
        write_json(asdict(rotated))
    else:
        write_line(
            f"{rotated.shipments:,} shipments' keys, {rotated.subscriptions} subscriptions' secrets and "
            f"{rotated.service_keys + rotated.log_keys} keys of the service are sealed under "
            "the first master key now; the others may be taken out of STATESVC_MASTER_KEY"
        )
        if rotated.root_keys:
            write_line("the KMS wrapped the root key under the newest version of its key")
    return 0


async def _run(options: argparse.Namespace) -> int:
    if options.action == "create" and not options.name.strip():
        raise CommandError("--name must say who uses the key", exit_code=2)
    async with service_connection(load_settings()) as connection:
        match options.action:
            case "create":
                key_id, key = await create_key(connection, name=options.name, scopes=options.scopes, created_by=actor())
                if options.json:
                    write_json({"id": key_id, "key": key, "scopes": [scope.value for scope in options.scopes]})
                else:
                    write_line(key)
            case "list":
                keys = await list_keys(connection)
                if options.json:
                    write_json(
                        [
                            {
                                "id": key.key_id,
                                "name": key.name,
                                "scopes": [scope.value for scope in key.scopes],
                                "created_at": key.created_at.isoformat(),
                                "created_by": key.created_by,
                                "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
                            }
                            for key in keys
                        ]
                    )
                else:
                    write_table(
                        ("ID", "NAME", "SCOPES", "CREATED", "REVOKED"),
                        [
                            (
                                key.key_id,
                                key.name,
                                ",".join(key.scopes),
                                f"{key.created_at:%Y-%m-%d %H:%M}",
                                f"{key.revoked_at:%Y-%m-%d %H:%M}" if key.revoked_at else None,
                            )
                            for key in keys
                        ],
                    )
            case _:
                if not await revoke_key(connection, key_id=options.id, revoked_by=actor()):
                    raise CommandError("no live key has this id: `statesvc keys list` shows them")
                write_line("revoked; in effect within 5 s")
    return 0


def _scopes(text: str) -> list[Scope]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    known = {scope.value for scope in Scope}
    unknown = [word for word in words if word not in known]
    if unknown or not words:
        raise argparse.ArgumentTypeError(f"unknown scope {', '.join(unknown) or '(none given)'}; there are {', '.join(sorted(known))}")
    return [Scope(word) for word in words]
