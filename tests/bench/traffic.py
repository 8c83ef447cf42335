"""Bodies to push: invented parcels, written by the sample carriers' own writers.

The same seed gives the same bytes.

`alerts`: UPS, one scan a message, four messages a shipment. `histories`: FedEx, ten new scans a
message. `growing`: the same shipments pushed after each scan with everything before it, as most
carriers do. `mixed`: seven alerts, three growing histories of five carriers, in ten messages.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

from statesvc.addons.demo.dialects import DIALECTS, fedex
from statesvc.addons.demo.parcels import TOWNS, Parcel, ParcelScan, ParcelStep, invent

Push = tuple[str, bytes]
"""(carrier_id, body)"""

NOW: Final = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ALERTS_A_SHIPMENT: Final = 4
SCANS: Final = 10
_LIFE: Final = (
    *(
        ParcelStep.LABEL,
        ParcelStep.PICKUP,
        ParcelStep.DEPART,
        ParcelStep.ARRIVE,
        ParcelStep.DEPART,
        ParcelStep.ARRIVE,
        ParcelStep.DELAY,
        ParcelStep.DEPART,
        ParcelStep.OUT,
        ParcelStep.DELIVERED,
    ),
)
_ALERT: Final = (
    b'{"trackingNumber":"1ZB%c%014d","localActivityDate":"%s","localActivityTime":"%s",'
    b'"activityLocation":{"city":"Chicago",'
    b'"stateProvince":"IL","postalCode":"60632","country":"US"},"activityStatus":{"type":"%s",'
    b'"code":"%s","description":"%s"},'
    b'"scheduledDeliveryDate":"20261122","gmtActivityDate":"%s","gmtActivityTime":"%s"}'
)
_STEPS: Final = (
    (b"P", b"PU", b"Pickup ParcelScan"),
    (b"I", b"DP", b"Departed"),
    (b"I", b"AR", b"Arrived"),
    (b"I", b"OT", b"Out For Delivery"),
)
_CHICAGO: Final = ZoneInfo("America/Chicago")


def alert(shipment: int, step: int, *, series: int = 0) -> bytes:
    """Build the scan `step` (0 .. 3) of a shipment; `series` (0 .. 25) keeps
    numbers of two loads apart.
    """
    at = NOW + timedelta(hours=step, seconds=shipment % 1800)
    local = at.astimezone(_CHICAGO)
    kind, code, words = _STEPS[step]
    clock = (f"{at:%Y%m%d}".encode(), f"{at:%H%M%S}".encode())
    return _ALERT % (
        65 + series,
        shipment,
        f"{local:%Y%m%d}".encode(),
        f"{local:%H%M%S}".encode(),
        kind,
        code,
        words,
        *clock,
    )


def alert_number(shipment: int, *, series: int = 0) -> str:
    return f"1ZB{chr(65 + series)}{shipment:014d}"


def alerts(count: int, *, series: int = 0) -> Iterator[Push]:
    """Yield alerts step by step over all shipments, so that each shipment's scans come in their
    order.
    """
    shipments = -(-count // ALERTS_A_SHIPMENT)
    return (
        ("ups", alert(place % shipments, place // shipments, series=series))
        for place in range(count)
    )


def histories(count: int) -> Iterator[Push]:
    """Yield messages that tell ten new scans of a shipment of their own."""
    return (("fedex", fedex(parcel, parcel.scans)) for parcel in map(_parcel, range(count)))


def growing(count: int) -> Iterator[Push]:
    """Yield each shipment after its first, second .. tenth scan; nine of ten scans at
    the end were told before.
    """
    parcels = [_parcel(number) for number in range(-(-count // SCANS))]
    pushes = (
        ("fedex", fedex(parcel, parcel.scans[:told]))
        for told in range(1, SCANS + 1)
        for parcel in parcels
    )
    return islice(pushes, count)


def mixed(count: int, *, series: int = 0) -> Iterator[Push]:
    """Yield what the ACK bench sends; all bodies differ."""
    single = alerts(count, series=series)
    rng = Random(series)
    told = _stories(rng, series)
    return (next(single) if place % 10 < 7 else next(told) for place in range(count))


def single_scans(count: int, carrier_id: str, *, series: int = 0) -> Iterator[Push]:
    """Yield one scan a message, in the carrier's own words; each shipment's in their order.

    `series` keeps numbers of two loads apart.
    """
    rng = Random(f"{carrier_id} {series}")
    parcels = [
        replace(
            invent(rng, carrier_id, NOW),
            number=f"{'1Z' if carrier_id == 'ups' else ''}{series:02d}{place:014d}",
        )
        for place in range(-(-count // ALERTS_A_SHIPMENT))
    ]
    write = DIALECTS[carrier_id][1]
    pushes = (
        (carrier_id, write(parcel, parcel.scans[step : step + 1]))
        for step in range(ALERTS_A_SHIPMENT)
        for parcel in parcels
    )
    return islice(pushes, count)


def _stories(rng: Random, series: int) -> Iterator[Push]:
    carriers = [carrier_id for carrier_id in DIALECTS if carrier_id != "ups"]
    number = series * 100_000_000
    while True:
        parcels = []
        for _ in range(200):
            carrier_id = carriers[number % len(carriers)]
            parcels.append(replace(invent(rng, carrier_id, NOW), number=f"{number:012d}"))
            number += 1
        for told in range(1, SCANS + 1):
            for parcel in parcels:
                if told <= len(parcel.scans):
                    yield (
                        parcel.carrier_id,
                        DIALECTS[parcel.carrier_id][1](parcel, parcel.scans[:told]),
                    )


def _parcel(number: int) -> Parcel:
    towns = TOWNS["fedex"]
    scans = tuple(
        ParcelScan(
            step=step,
            at=(NOW - timedelta(hours=6 * (SCANS - place), seconds=number % 3600)).astimezone(
                ZoneInfo(town.zone)
            ),
            town=town,
        )
        for place, step in enumerate(_LIFE)
        for town in [towns[place % len(towns)]]
    )
    return Parcel(carrier_id="fedex", number=f"88{number:010d}", scans=scans, signer="A. Sample")
