"""`statesvc keys create | list | revoke | rotate-master | log | rotate-log | retire-log`."""

import argparse
import asyncio
from dataclasses import asdict
from typing import Any

from psycopg import AsyncConnection

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import show_progress, write_json, write_line, write_table
from statesvc.cli.session import actor, connect, running_database, service_connection
from statesvc.cli.tombstone_places import NO_PLACE, configured_tombstones, publish_tombstones
from statesvc.database.keyring_store import load_keyring
from statesvc.http.key_store import OWNER, Scope, create_key, list_keys
from statesvc.log import signing_keys
from statesvc.log.tombstones import Tombstone, TombstoneKind
from statesvc.repair.key_rotation import rewrap_root_key, rotate
from statesvc.roles.master_key import key_sources, open_master_keys, open_sources
from statesvc.settings.service_settings import Settings, load_settings
from statesvc.subscriptions.key_revocation import revoke_key

_LOG_ACTIONS = ("log", "rotate-log", "retire-log")


def configure(parser: argparse.ArgumentParser) -> None:
    """What the commands take."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="create | list | revoke | rotate-master | ...")
    create = commands.add_parser("create", help="make a key; it is shown once")
    create.add_argument("--name", required=True, help="name of its user")
    create.add_argument("--scopes", required=True, type=_scopes, help=f"comma-separated, of {', '.join(scope.value for scope in Scope)}")
    create.add_argument(
        "--owner",
        type=_owner,
        help="owner of the subscriptions that it manages; to rotate a key, give the old key's owner (default: its own id)",
    )
    create.add_argument("--json", action="store_true", help="for scripts")
    listing = commands.add_parser("list", help="all keys, without the keys themselves")
    listing.add_argument("--json", action="store_true", help="for scripts")
    revoke = commands.add_parser("revoke", help="end a key; in effect within 5 s")
    revoke.add_argument("id", help="the key's id")
    revoke.add_argument("--json", action="store_true", help="for scripts")
    rotate = commands.add_parser("rotate-master", help="seal everything again under the first key of STATESVC_MASTER_KEY")
    rotate.add_argument("--json", action="store_true", help="for scripts")
    _configure_log_keys(commands)


def run(options: argparse.Namespace) -> int:
    """Runs one of them."""
    if options.action in _LOG_ACTIONS:
        return asyncio.run(_run_log_keys(options))
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
    settings = load_settings()
    async with service_connection(settings) as connection:
        match options.action:
            case "create":
                key_id, key = await create_key(
                    connection, name=options.name, scopes=options.scopes, created_by=actor(), owner=options.owner
                )
                if options.json:
                    scopes = [scope.value for scope in options.scopes]
                    write_json({"id": key_id, "key": key, "owner": options.owner or key_id, "scopes": scopes})
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
                                "owner": key.owner,
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
                        ("ID", "NAME", "OWNER", "SCOPES", "CREATED", "REVOKED"),
                        [
                            (
                                key.key_id,
                                key.name,
                                key.owner,
                                ",".join(key.scopes),
                                f"{key.created_at:%Y-%m-%d %H:%M}",
                                f"{key.revoked_at:%Y-%m-%d %H:%M}" if key.revoked_at else None,
                            )
                            for key in keys
                        ],
                    )
            case _:
                await _revoke(connection, settings, options)
    return 0


async def _is_retired(connection: AsyncConnection[Any], key_id: bytes) -> bool:
    """Whether an earlier try has done it, and perhaps not published that."""
    return any(key.verifier.key_id == key_id and key.retired_at is not None for key in await signing_keys.read_keys(connection))


async def _revoke(connection: AsyncConnection[Any], settings: Settings, options: argparse.Namespace) -> None:
    disabled = await revoke_key(connection, key_id=options.id, revoked_by=actor())
    if disabled is None and options.id not in {key.key_id for key in await list_keys(connection) if key.revoked_at}:
        raise CommandError("no key has this id: `statesvc keys list` shows them")
    places = await _publish_tombstone(settings, TombstoneKind.API_KEY, options.id)
    if disabled is None:
        raise CommandError("no live key has this id, it was revoked before: `statesvc keys list` shows the live ones")
    if options.json:
        write_json({"id": options.id, "disabled_subscriptions": [str(one) for one in disabled], "tombstones": places})
    else:
        write_line("revoked; in effect within 5 s")
        if not places:
            write_line(NO_PLACE)
        for one in disabled:
            write_line(f"subscription {one} is disabled: no live key of its owner covers it; `statesvc keys create --owner`")


async def _publish_tombstone(settings: Settings, kind: TombstoneKind, subject: str) -> list[str]:
    """Where it lies now."""
    tombstones = configured_tombstones(settings)
    await publish_tombstones(tombstones, [Tombstone(kind=kind, subject=subject, details={})])
    return tombstones.names


def _scopes(text: str) -> list[Scope]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    known = {scope.value for scope in Scope}
    unknown = [word for word in words if word not in known]
    if unknown or not words:
        raise argparse.ArgumentTypeError(f"unknown scope {', '.join(unknown) or '(none given)'}; there are {', '.join(sorted(known))}")
    return [Scope(word) for word in words]


def _owner(text: str) -> str:
    if not OWNER.fullmatch(text):
        raise argparse.ArgumentTypeError("an owner is a word of at most 100 printable ASCII characters, without blanks")
    return text


def _configure_log_keys(commands: Any) -> None:  # noqa: ANN401 - argparse has no public name for it
    """`log | rotate-log | retire-log`: the keys that sign the log's checkpoints."""
    listing = commands.add_parser("log", help="the public keys of the log's checkpoints, for those who verify it")
    listing.add_argument("--json", action="store_true", help="for scripts")
    rotating = commands.add_parser("rotate-log", help="make a new key, which signs checkpoints alongside the old one")
    rotating.add_argument("--why", default="", help="recorded in the log")
    retiring = commands.add_parser("retire-log", help="have an older key of the log sign no more; its secret is destroyed")
    retiring.add_argument("id", type=_key_id, help="its key id, 8 hexadecimal digits")
    retiring.add_argument("--why", default="", help="recorded in the log")


async def _run_log_keys(options: argparse.Namespace) -> int:
    """Runs one of them."""
    settings = load_settings()
    async with service_connection(settings) as connection:
        match options.action:
            case "log":
                await _list_log_keys(connection, as_json=options.json)
            case "rotate-log":
                async with connection.transaction():
                    key = await signing_keys.rotate(
                        connection, await open_master_keys(settings, connection), actor=actor(), why=options.why
                    )
                write_line(str(key))
            case _:
                if not await _is_retired(connection, options.id):
                    async with connection.transaction():
                        await signing_keys.retire(connection, options.id, actor=actor(), why=options.why)
                places = await _publish_tombstone(settings, TombstoneKind.LOG_KEY, options.id.hex())
                write_line("retired; it signs no more" if places else f"retired; it signs no more. {NO_PLACE}")
    return 0


async def _list_log_keys(connection: AsyncConnection[Any], *, as_json: bool) -> None:
    keys = await signing_keys.read_keys(connection)
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
