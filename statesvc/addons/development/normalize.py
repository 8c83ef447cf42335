"""`statesvc normalize CARRIER FILE`: print the canonical events of a payload, one per line.

Personal fields included. Needs no database, so there is no digest key of an installation: the event
id of a scan without any code, which its text identifies, differs from the id in the log.
"""

import argparse
import hmac
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from events.errors import UnreadableMessageError
from events.event import Event, Normalized
from events.identity.ids import carrier_code, identify
from statesvc.cli.arguments import carrier_named
from statesvc.cli.command_error import CommandError
from statesvc.settings.carrier_settings import SettingError, read_zones

_KEY: Final = b"statesvc normalize"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("carrier", help="a carrier id, as `statesvc carriers` lists them")
    parser.add_argument("file", help="the raw body, or - for standard input")
    parser.add_argument(
        "--version", help="the normalizer's version (default: the one that reads messages now)"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="the default: events are JSON lines anyway",
    )
    parser.add_argument(
        "--zone",
        help=(
            "the zones of the account (IANA names, codes of countries), as"
            " STATESVC_CARRIER_ZONE_<CARRIER> sets them for the service"
        ),
    )
    parser.add_argument(
        "--received-at", type=_rfc3339_time, help="when the body came, RFC 3339 (default: now)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the events; for an unreadable body return 1, with the cause on standard error."""
    carrier = carrier_named(options.carrier)
    if options.version not in (None, *carrier.normalizers):
        raise CommandError(
            (
                f"{options.carrier} has no version {options.version!r}, but"
                f" {', '.join(carrier.normalizers)}"
            ),
            exit_code=2,
        )
    try:
        zones = read_zones(options.zone, "--zone") if options.zone else ()
    except SettingError as error:
        raise CommandError(str(error), exit_code=2) from error
    version = options.version or carrier.stable
    body = _read(options.file)
    received_at = options.received_at or datetime.now(UTC)
    identified = partial(
        identify, carrier_id=carrier.carrier_id, digest=_digest, allow_unnumbered=True
    )
    try:
        normalized = carrier.in_zones(*zones).read(body, received_at, version)
        events = [identified(reading) for reading in normalized.readings]
    except UnreadableMessageError as error:
        sys.stderr.write(f"{error.cause.value}: {error.detail}\n")
        return 1
    for event in events:
        sys.stdout.buffer.write(orjson.dumps(document(event)) + b"\n")
    sys.stdout.buffer.flush()
    return _write_rejections(normalized)


def _write_rejections(normalized: Normalized) -> int:
    for rejection in normalized.rejections:
        sys.stderr.write(f"rejected {rejection.pointer}: {rejection.why}\n")
    if normalized == Normalized():
        sys.stderr.write("no events\n")
    return 0


def document(event: Event) -> dict[str, Any]:
    """Return the event as the contract prints it, with its personal fields.

    `tracking_number` is None if the message names none.
    """
    place, raw = event.location, event.personal.raw or event.raw
    return {
        "carrier_id": event.carrier_id,
        "event_id": event.event_id,
        "tracking_number": event.tracking_number or None,
        "discriminator": event.discriminator,
        "kind": event.kind.value,
        "occurred_at": event.occurred_at.isoformat(),
        "occurred_at_raw": event.occurred_at_raw,
        "tz_source": event.tz_source.value,
        "time_precision": event.time_precision.value,
        "status": event.status.value if event.status else None,
        "reason": event.reason.value if event.reason else None,
        "carrier_code": carrier_code(raw),
        "by_category": event.by_category,
        "description": event.personal.description,
        "location": {
            "city": place.city,
            "region": place.region,
            "postal_code": event.personal.postal_code or place.postal_code,
            "country": place.country,
            "facility": event.personal.facility or place.facility,
        },
        "piece": event.piece,
        "estimated_delivery": event.estimated_delivery,
        "service": event.service,
        "signed_by": event.personal.signed_by,
        "delivery_address": event.personal.delivery_address,
        "corrects": event.corrects,
        "anchor": event.anchor,
    }


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}", exit_code=2) from error


def _digest(data: bytes) -> bytes:
    return hmac.digest(_KEY, data, "sha256")


def _rfc3339_time(text: str) -> datetime:
    """Parse RFC 3339 with offset, as a type for argparse."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("not a time in RFC 3339") from None
    if found.tzinfo is None:
        raise argparse.ArgumentTypeError("needs an offset, such as Z")
    return found
