"""`statesvc carriers`: supported carriers with their authentication and quotas."""

import argparse
import asyncio
from typing import Any, Final

import psycopg

from events.carriers import CARRIERS
from events.carriers.carrier import Carrier
from statesvc.cli.carrier_authentication import accepted, binds_body, open_points, secret_state
from statesvc.cli.output import write_json, write_line, write_table
from statesvc.cli.session import connect
from statesvc.database.embedded import locate
from statesvc.database.postgres_programs import NoDataError
from statesvc.ingress.scheme_words import described
from statesvc.queue.carrier_quota import CarrierQuota, list_quotas
from statesvc.settings.service_settings import Settings, load_settings

_HEADINGS: Final = (
    "CARRIER",
    "NAME",
    "VERSIONS",
    "AUTHENTICATION",
    "SECRET",
    "WEIGHT",
    "IN FLIGHT MAX",
    "FORMATS",
    "OPEN",
)
_WIDE: Final = ("WEIGHT", "IN FLIGHT MAX", "FORMATS", "OPEN")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for scripts")


def run(options: argparse.Namespace) -> int:
    """Print the table of carriers, as this release and these settings have them."""
    settings = load_settings()
    quotas = asyncio.run(_quotas(settings))
    carriers = [_described(carrier, settings, quotas) for _, carrier in sorted(CARRIERS.items())]
    if options.json:
        write_json(carriers)
        return 0
    rows = [
        (
            carrier["carrier_id"],
            carrier["name"],
            " ".join(
                f"{version}*" if version == carrier["stable"] else version
                for version in carrier["versions"]
            ),
            ", ".join(carrier["authentication"]),
            carrier["secret"],
            carrier["weight"],
            carrier["in_flight_max"],
            ", ".join(carrier["formats"]),
            "; ".join(carrier["open"]) or None,
        )
        for carrier in carriers
    ]
    write_table(_HEADINGS, rows, wide=_WIDE)
    write_line("* reads the messages now")
    return 0


def _described(
    carrier: Carrier, settings: Settings, quotas: dict[str, CarrierQuota] | None
) -> dict[str, Any]:
    quota = (
        None
        if quotas is None
        else quotas.get(carrier.carrier_id, CarrierQuota(carrier_id=carrier.carrier_id))
    )
    schemes = accepted(carrier, settings)
    return {
        "carrier_id": carrier.carrier_id,
        "name": carrier.name,
        "versions": list(carrier.normalizers),
        "stable": carrier.stable,
        "formats": list(carrier.formats),
        "authentication": described(schemes),
        "binds_body": binds_body(schemes),
        "weight": quota and quota.weight,
        "in_flight_max": quota and quota.in_flight_max,
        "secret": secret_state(carrier, settings),
        "open": open_points(carrier, settings),
        "addresses": [
            str(network)
            for network in settings.webhook_networks.get(carrier.carrier_id.upper(), ())
        ],
        "key_set": settings.webhook_key_sets.get(carrier.carrier_id.upper()),
    }


async def _quotas(settings: Settings) -> dict[str, CarrierQuota] | None:
    """Return the quotas by carrier.

    None without a database, which the list of carriers does not need.
    """
    try:
        found = locate(settings.database)
        if found is None:
            return None
        async with await connect(found.service, direct=not found.is_pooled) as connection:
            return {quota.carrier_id: quota for quota in await list_quotas(connection)}
    except (NoDataError, psycopg.Error):
        return None
