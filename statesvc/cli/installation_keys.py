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
from statesvc.settings.service_settings import Settings, load_settings

_NAME: Final = re.compile(r"(?!statesvc|pg_|postgres)[a-z_][a-z0-9_]{0,62}", re.ASCII)


def run(options: argparse.Namespace) -> int:
    if options.action == "inbox":
        asyncio.run(show_inbox_key(role_name(options.role), as_json=options.json))
        return 0
    return asyncio.run(
        _rotate(options) if options.action == "rotate-master" else _run_log_keys(options)
    )


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


async def _is_retired(connection: AsyncConnection[Any], key_id: bytes) -> bool:
    """Return whether an earlier try has done it, and perhaps not published that."""
    return any(
        key.verifier.key_id == key_id and key.retired_at is not None
        for key in await signing_keys.read_keys(connection)
    )


async def _publish_tombstone(settings: Settings, kind: TombstoneKind, subject: str) -> list[str]:
    """Publish the tombstone and return its places."""
    tombstones = configured_tombstones(settings)
    await publish_tombstones(tombstones, [Tombstone(kind=kind, subject=subject, details={})])
    return tombstones.names


async def _run_log_keys(options: argparse.Namespace) -> int:
    settings = load_settings()
    async with service_connection(settings) as connection:
        match options.action:
            case "rotate-log":
                async with connection.transaction():
                    key = await signing_keys.rotate(
                        connection,
                        await open_master_keys(settings, connection),
                        actor=actor(),
                        why=options.why,
                    )
                write_answer(
                    str(key), {"id": key.key_id.hex(), "key": str(key)}, as_json=options.json
                )
            case _:
                if not await _is_retired(connection, options.id):
                    async with connection.transaction():
                        await signing_keys.retire(
                            connection, options.id, actor=actor(), why=options.why
                        )
                places = await _publish_tombstone(settings, TombstoneKind.LOG_KEY, options.id.hex())
                sentence = (
                    "retired; it signs no more"
                    if places
                    else f"retired; it signs no more. {NO_PLACE}"
                )
                write_answer(
                    sentence, {"id": options.id.hex(), "tombstones": places}, as_json=options.json
                )
    return 0


def role_name(text: str) -> str:
    """Parse the name of a role.

    The service's own roles are refused, because it would change their passwords.
    """
    if not _NAME.fullmatch(text):
        raise CommandError(
            "--role is lower-case letters, digits and _, and does not begin with statesvc, pg_ or postgres",
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
            f"Have a superuser run these statements; the role works then:\n{(made + grants).as_string()}\n"
        )
        return
    async with await connect(dsns.superuser) as connection:
        known = await connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,))
        if known.rowcount:
            made = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {};\n").format(named, word)
        await connection.execute(made + grants)
