"""`statesvc keys inbox`: what the workers of another fleet are given: a role, the database's address and the inbox key."""

import base64
import re
import secrets
import shlex
import sys
from importlib.resources import files
from typing import Final

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_json, write_line
from statesvc.cli.session import actor, connect, running_database
from statesvc.database.dsns import Dsns
from statesvc.database.keyring_store import load_keyring
from statesvc.log.actions import record_action
from statesvc.roles.master_key import key_sources, open_sources
from statesvc.settings.service_settings import load_settings

_NAME: Final = re.compile(r"(?!statesvc|pg_|postgres)[a-z_][a-z0-9_]{0,62}", re.ASCII)


def role_name(text: str) -> str:
    """Parse the name of a role. The service's own roles, whose passwords it would change, are refused."""
    if not _NAME.fullmatch(text):
        raise CommandError(
            "--role is lower-case letters, digits and _, and does not begin with statesvc, pg_ or postgres",
            exit_code=2,
        )
    return text


async def show_inbox_key(role: str, *, as_json: bool) -> None:
    """Print libpq's variables and the inbox key; make the role where the superuser is ours to be, else print its statements."""
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
