"""`statesvc keys rotate-master | inbox | rotate-log | retire-log`: installation keys."""

import argparse
import asyncio
import base64
import re
import secrets
import shlex
import sys
from dataclasses import asdict
from importlib.resources import files
from typing import Any, Final

from psycopg import AsyncConnection, sql
from psycopg.conninfo import conninfo_to_dict

from statesvc.api.key_words import NO_PLACE
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import show_progress, write_answer, write_json, write_line
from statesvc.cli.session import actor, connect, running_database, service_connection
from statesvc.cli.tombstone_places import configured_tombstones, publish_tombstones
from statesvc.database.dsns import Dsns
from statesvc.database.keyring_store import load_keyring
from statesvc.log import signing_keys
from statesvc.log.actions import record_action
from statesvc.log.tombstones import Tombstone, TombstoneKind
from statesvc.privacy.key_rotation import rewrap_root_key, rotate
from statesvc.roles.master_key import key_sources, open_master_keys, open_sources
from statesvc.settings.service_settings import load_settings

_NAME: Final = re.compile(r"(?!statesvc|pg_|postgres)[a-z_][a-z0-9_]{0,62}", re.ASCII)


def configure(parser: argparse.ArgumentParser) -> None:
    action = parser.prog.rsplit(maxsplit=1)[-1]
    if action == "inbox":
        parser.add_argument(
            "--role",
            default="old_fleet",
            help="the role in the database, which gets a new password (default: %(default)s)",
        )
    if action == "retire-log":
        parser.add_argument("id", type=_key_id, help="its key id, 8 hexadecimal digits")
    if action.endswith("-log"):
        parser.add_argument("--why", default="", help="recorded in the log")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    match options.action:
        case "inbox":
            asyncio.run(show_inbox_key(role_name(options.role), as_json=options.json))
        case "rotate-master":
            asyncio.run(_rotate_master(options))
        case "rotate-log":
            asyncio.run(_rotate_log(options))
        case _:
            asyncio.run(_retire_log(options))
    return 0


def _key_id(text: str) -> bytes:
    try:
        key_id = bytes.fromhex(text)
    except ValueError:
        key_id = b""
    if len(key_id) != 4:
        raise argparse.ArgumentTypeError("a key id has 8 hexadecimal digits")
    return key_id


async def _rotate_master(options: argparse.Namespace) -> None:
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
            f"{rotated.shipments:,} shipments' keys, {rotated.subscriptions} subscriptions' secrets"
            f" and {rotated.service_keys + rotated.log_keys} keys of the service are sealed under"
            " the first master key now; the others may be taken out of STATESVC_MASTER_KEY"
        )
        if rotated.root_keys:
            write_line("the KMS wrapped the root key under the newest version of its key")


async def _is_retired(connection: AsyncConnection[Any], key_id: bytes) -> bool:
    """Return whether an earlier try has done it, and perhaps not published that."""
    return any(
        key.verifier.key_id == key_id and key.retired_at is not None
        for key in await signing_keys.read_keys(connection)
    )


async def _rotate_log(options: argparse.Namespace) -> None:
    settings = load_settings()
    async with service_connection(settings) as connection, connection.transaction():
        master = await open_master_keys(settings, connection)
        key = await signing_keys.rotate(connection, master, actor=actor(), why=options.why)
    write_answer(str(key), {"id": key.key_id.hex(), "key": str(key)}, as_json=options.json)


async def _retire_log(options: argparse.Namespace) -> None:
    settings, key_id = load_settings(), options.id.hex()
    async with service_connection(settings) as connection:
        if not await _is_retired(connection, options.id):
            async with connection.transaction():
                await signing_keys.retire(connection, options.id, actor=actor(), why=options.why)
        tombstones = configured_tombstones(settings)
        published = Tombstone(kind=TombstoneKind.LOG_KEY, subject=key_id, details={})
        await publish_tombstones(tombstones, [published])
    places = tombstones.names
    sentence = "retired; it signs no more" + ("" if places else f". {NO_PLACE}")
    write_answer(sentence, {"id": key_id, "tombstones": places}, as_json=options.json)


def role_name(text: str) -> str:
    """Parse the name of a role.

    The service's own roles are refused, because it would change their passwords.
    """
    if not _NAME.fullmatch(text):
        raise CommandError(
            "--role is lower-case letters, digits and _, and does not begin with statesvc, pg_ or"
            " postgres",
            exit_code=2,
        )
    return text


async def show_inbox_key(role: str, *, as_json: bool) -> None:
    """Print libpq's variables and the inbox key.

    Make the role if we may act as superuser, else print its statements.
    """
    settings = load_settings()
    async with running_database(settings) as dsns:
        async with await connect(dsns.service, direct=not dsns.is_pooled) as connection:
            sources = await open_sources(key_sources(settings), connection)
            keyring = await load_keyring(connection, sources)
            async with connection.transaction():
                await record_action(
                    connection, actor=actor(), verb="key.inbox", target=f"role {role}", details={}
                )
        place = conninfo_to_dict(dsns.listen)
        password = secrets.token_urlsafe(24)
        await _make_role(dsns, role, password, database=str(place["dbname"]))
    given = {
        "PGHOST": str(place.get("host", "localhost")),
        "PGPORT": str(place.get("port", 5432)),
        "PGDATABASE": str(place["dbname"]),
        "PGUSER": role,
        "PGPASSWORD": password,
        "STATESVC_INBOX_KEY": base64.b64encode(keyring.inbox.key).decode(),
    }
    if as_json:
        write_json(given)
    else:
        for name, value in given.items():
            write_line(f"export {name}={shlex.quote(value)}")


async def _make_role(dsns: Dsns, role: str, password: str, *, database: str) -> None:
    named, word = sql.Identifier(role), sql.Literal(password)
    grants = sql.SQL((files("statesvc.cli") / "fleet_role.sql").read_text("utf-8")).format(
        role=named, database=sql.Identifier(database)
    )
    made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {};\n").format(named, word)
    if dsns.superuser is None:
        sys.stderr.write(
            "Have a superuser run these statements; the role works"
            f" then:\n{(made + grants).as_string()}\n"
        )
        return
    async with await connect(dsns.superuser) as connection:
        known = await connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,))
        if known.rowcount:
            made = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {};\n").format(named, word)
        await connection.execute(made + grants)
