"""`statesvc carriers` and `statesvc carriers unmapped`."""

import argparse
import asyncio
from typing import Any, assert_never

from events.carriers import CARRIERS
from events.carriers.carrier import Authentication, Basic, Carrier, Hmac, Sha256Concat, SharedHeader, UrlToken
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import service_connection
from statesvc.dead_letters.listing import NEWEST, DeadLetter, Filter, list_dead_letters, show_dead_letter
from statesvc.settings import Settings, load_settings

PAGE = 200


def configure(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("what", nargs="?", choices=["unmapped"], help="list the codes that no mapping knows yet")
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Prints the table of carriers, or the unknown codes."""
    settings = load_settings()
    if options.what == "unmapped":
        return asyncio.run(_unmapped(settings, as_json=options.json))
    carriers = [_described(carrier, settings) for _, carrier in sorted(CARRIERS.items())]
    if options.json:
        write_json(carriers)
    else:
        write_table(
            ("CARRIER", "NAME", "VERSIONS", "AUTHENTICATION", "SECRET", "FORMATS"),
            [
                (
                    carrier["carrier_id"],
                    carrier["name"],
                    " ".join(f"{version}*" if version == carrier["stable"] else version for version in carrier["versions"]),
                    ", ".join(carrier["authentication"]) or "any",
                    carrier["secret"],
                    ", ".join(carrier["formats"]),
                )
                for carrier in carriers
            ],
        )
        write_line("* reads the messages now")
    return 0


def described(method: Authentication) -> str:
    """How a carrier proves who it is, in words."""
    match method:
        case Hmac():
            return f"HMAC-{method.algorithm.upper()} in {method.header}"
        case Sha256Concat():
            return f"SHA-256 of body and secret in {method.header}"
        case SharedHeader():
            return f"secret in {method.header}"
        case Basic():
            return "basic authentication"
        case UrlToken():
            return f"?{method.parameter}="
        case _:
            assert_never(method)


def _described(carrier: Carrier, settings: Settings) -> dict[str, Any]:
    secrets = len(settings.webhook_secrets(carrier.carrier_id))
    unsigned = settings.ingress.allows_unsigned(carrier.carrier_id)
    return {
        "carrier_id": carrier.carrier_id,
        "name": carrier.name,
        "versions": list(carrier.normalizers),
        "stable": carrier.stable,
        "formats": list(carrier.formats),
        "authentication": [described(method) for method in carrier.authentication],
        "secret": "set" if secrets == 1 else f"{secrets} live" if secrets else "unsigned" if unsigned else "none",
    }


async def _unmapped(settings: Settings, *, as_json: bool) -> int:
    found: list[dict[str, Any]] = []
    async with service_connection(settings) as connection:
        before: int | None = NEWEST
        while before is not None:
            letters, before = await list_dead_letters(connection, Filter(kind="code", is_open=True), before=before, limit=PAGE)
            for letter in letters:
                shown = await show_dead_letter(connection, letter.dead_letter_id)
                statements = shown[1] if shown is not None else None
                found.append(
                    {
                        "dead_letter_id": letter.dead_letter_id,
                        "carrier_id": letter.carrier_id,
                        "code": _code(letter),
                        "events": statements.events if statements else 0,
                        "shipments": statements.shipments if statements else 0,
                        "counts_capped": statements.counts_capped if statements else False,
                        "since": letter.created_at.isoformat(timespec="seconds"),
                    }
                )
    if as_json:
        write_json(found)
    elif found:
        columns = ("carrier_id", "code", "events", "shipments", "since", "dead_letter_id")
        write_table([column.upper() for column in columns], [[row[column] for column in columns] for row in found])
    else:
        write_line("every code that was pushed is mapped")
    return 0


def _code(letter: DeadLetter) -> str:
    return "/".join(part for part in (letter.raw_type, letter.raw_code) if part) or "(no code)"
