"""`statesvc keys create | list | revoke`: who may call the API; `rotate-master | inbox | log | ...` are in `installation_keys`."""

import argparse
import asyncio
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

from statesvc.cli.api_calls import Calls, Json
from statesvc.cli.command_error import CommandError
from statesvc.cli.id_prefix import one_beginning_with
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import NO_PLACE, time_of, write_json, write_line, write_table
from statesvc.cli.service_calls import api_calls, calls_afar

_PAGE: Final = 200


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", required=True)
    create = commands.add_parser("create", help="make a key; it is shown once")
    add_fields(create, "create_api_key", "name")
    create.add_argument(
        "--scopes",
        required=True,
        help="comma-separated, of ingest, read, audit, pii, subscriptions, ops, admin",
    )
    add_fields(create, "create_api_key", "owner", "expires_at")
    create.add_argument("--json", action="store_true", help="for scripts")
    listing = commands.add_parser("list", help="all keys, without the keys themselves")
    listing.add_argument("--json", action="store_true", help="for scripts")
    revoke = commands.add_parser("revoke", help="end a key; in effect within 5 s")
    revoke.add_argument("id", help="the key's id, or as many characters of it as are unique")
    revoke.add_argument("--json", action="store_true", help="for scripts")
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
    if options.action in {"create", "list", "revoke"}:
        return asyncio.run(_run(options))
    if calls_afar(options) and options.action == "log":
        return asyncio.run(_list_log_keys(options))
    if calls_afar(options):
        raise CommandError(
            f"keys {options.action} works on the service's own machine: it calls no service",
            exit_code=2,
        )
    from statesvc.cli.installation_keys import run as run_here  # noqa: PLC0415 - loads the database driver

    return run_here(options)


async def _run(options: argparse.Namespace) -> int:
    async with api_calls(options) as calls:
        match options.action:
            case "create":
                await _create(calls, options)
            case "list":
                await _list(calls, as_json=options.json)
            case _:
                await _revoke(calls, options)
    return 0


async def _create(calls: Calls, options: argparse.Namespace) -> None:
    scopes = [word.strip() for word in options.scopes.split(",") if word.strip()]
    order = {
        "name": options.name,
        "scopes": scopes,
        "owner": options.owner,
        "expires_at": options.expires_at,
    }
    made = await calls.call(
        "create_api_key", {name: value for name, value in order.items() if value is not None}
    )
    if options.json:
        write_json(
            {
                "id": made["key_id"],
                **{name: value for name, value in made.items() if name != "key_id"},
            }
        )
    else:
        write_line(made["key"])


async def _all(calls: Calls) -> list[Mapping[str, Any]]:
    keys: list[Mapping[str, Any]] = []
    cursor: Json = None
    while True:
        page = await calls.call("list_api_keys", limit=_PAGE, cursor=cursor)
        keys, cursor = [*keys, *page["items"]], page["next_cursor"]
        if cursor is None:
            return keys


async def _list(calls: Calls, *, as_json: bool) -> None:
    keys = await _all(calls)
    if as_json:
        write_json(
            [
                {
                    "id": key["key_id"],
                    **{name: value for name, value in key.items() if name != "key_id"},
                }
                for key in keys
            ]
        )
        return
    times = ("created_at", "last_used_at", "expires_at", "revoked_at")
    write_table(
        ("ID", "NAME", "OWNER", "SCOPES", "CREATED", "LAST USED", "EXPIRES", "REVOKED"),
        [
            (
                key["key_id"],
                key["name"],
                key["owner"],
                ",".join(key["scopes"]),
                *(time_of(key[name]) for name in times),
            )
            for key in keys
        ],
    )


async def _list_log_keys(options: argparse.Namespace) -> int:
    """List the keys of a service somewhere else."""
    async with api_calls(options) as calls:
        keys = [
            {"id": key["key"].split("+")[1], **key}
            for key in (await calls.call("list_checkpoint_keys"))["items"]
        ]
    if not keys:
        raise CommandError("the log has no key yet: the sealer makes it when it starts")
    if options.json:
        write_json(keys)
    else:
        rows = [
            (key["id"], time_of(key["created_at"]), time_of(key["retired_at"]), key["key"])
            for key in keys
        ]
        write_table(("ID", "CREATED", "RETIRED", "KEY"), rows)
    return 0


async def _revoke(calls: Calls, options: argparse.Namespace) -> None:
    key_id = one_beginning_with(
        options.id, await _all(calls), name=itemgetter("key_id"), what="key"
    )["key_id"]
    revoked = await calls.call("revoke_api_key", key_id=key_id)
    if options.json:
        write_json(
            {
                "id": revoked["key_id"],
                **{name: value for name, value in revoked.items() if name != "key_id"},
            }
        )
        return
    write_line("revoked; in effect within 5 s")
    if not revoked["tombstones"]:
        write_line(NO_PLACE)
    for one in revoked["disabled_subscriptions"]:
        write_line(
            f"subscription {one} is disabled: no live key of its owner covers it; `statesvc keys create --owner`"
        )


def _configure_log_keys(commands: Any) -> None:  # noqa: ANN401 - argparse has no public name for it
    """Add `log | rotate-log | retire-log`: the keys that sign the log's checkpoints."""
    listing = commands.add_parser(
        "log", help="the public keys of the log's checkpoints, for those who verify it"
    )
    listing.add_argument("--json", action="store_true", help="for scripts")
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
