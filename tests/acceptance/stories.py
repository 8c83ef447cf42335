"""Invented parcels: what carriers would push about them, in every shape that causes trouble."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass

CITIES = (
    ("Dallas", "TX", "75201"),
    ("Memphis", "TN", "37501"),
    ("Reno", "NV", "89501"),
    ("Salem", "OR", "97301"),
)


@dataclass(frozen=True, slots=True)
class Message:
    """One webhook."""

    carrier_id: str
    body: bytes


def ups_alert(
    number: str, code: str, *, day: int, minute: int, text: str = "Scan", signer: str | None = None
) -> Message:
    """Build one UPS Track Alert; `code` as type and code joined by a slash."""
    kind, _, short = code.partition("/")
    city, state, postal = CITIES[(day + minute) % len(CITIES)]
    body = {
        "trackingNumber": number,
        "localActivityDate": f"202605{day:02d}",
        "localActivityTime": f"{minute // 60:02d}{minute % 60:02d}00",
        "activityLocation": {
            "city": city,
            "stateProvince": state,
            "postalCode": postal,
            "country": "US",
        },
        "activityStatus": {
            "type": kind,
            "code": short,
            "description": text,
            "descriptionCode": "000",
        },
        "scheduledDeliveryDate": "20260510",
        "gmtActivityDate": f"202605{day:02d}",
        "gmtActivityTime": f"{minute // 60 + 4:02d}{minute % 60:02d}00",
        "gmtOffset": "-04.00",
    }
    if signer is not None:
        body["receivedBy"] = signer
    return Message("ups", json.dumps(body).encode())


def canonical(
    number: str, event_id: str, status: str | None, *, day: int, minute: int, **more: str
) -> Message:
    """Build one event of our own format."""
    event = {
        "carrier_id": "canonical",
        "event_id": event_id,
        "tracking_number": number,
        "occurred_at": f"2026-05-{day:02d}T{minute // 60:02d}:{minute % 60:02d}:00+00:00",
        "status": status,
        **more,
    }
    return Message(
        "canonical",
        json.dumps({name: value for name, value in event.items() if value is not None}).encode(),
    )


def ups_story(number: str, chance: random.Random) -> Iterator[Message]:
    """Yield a parcel with late, backward and repeated scans, often delivered twice."""
    yield ups_alert(number, "M/MP", day=1, minute=600)
    yield ups_alert(number, "I/OR", day=2, minute=480)
    for day in range(3, 3 + chance.randrange(1, 4)):
        yield ups_alert(number, "I/DP", day=day, minute=chance.randrange(60, 300))
        yield ups_alert(number, "I/AR", day=day, minute=chance.randrange(300, 600))
    yield ups_alert(number, "M/MP", day=4, minute=700, text="Order processed again")
    yield ups_alert(number, "I/OT", day=7, minute=500)
    yield ups_alert(number, "D/FS", day=7, minute=800, text="Delivered", signer="Q. Tester")
    if chance.random() < 0.5:
        yield ups_alert(number, "I/OT", day=8, minute=500)
        yield ups_alert(number, "D/FS", day=8, minute=820, text="Delivered", signer="R. Tester")
    if chance.random() < 0.3:
        yield ups_alert(number, "X/DM", day=9, minute=300, text="Refund")


def canonical_story(number: str, chance: random.Random) -> Iterator[Message]:
    """Yield a parcel whose sender corrects itself."""
    yield canonical(number, f"{number}-1", "info_received", day=1, minute=100)
    yield canonical(number, f"{number}-2", "in_transit", day=2, minute=100)
    yield canonical(number, f"{number}-3", "exception", day=3, minute=100, reason="weather")
    yield canonical(number, f"{number}-4", "out_for_delivery", day=4, minute=100)
    yield canonical(number, f"{number}-5", "delivered", day=4, minute=400)
    if chance.random() < 0.5:
        yield canonical(
            number,
            f"{number}-6",
            None,
            day=4,
            minute=500,
            kind="correction",
            corrects=f"{number}-5",
        )
        yield canonical(number, f"{number}-7", "delivery_attempted", day=4, minute=410)


def messages(count: int, seed: int) -> list[Message]:
    """Return at least `count` messages about many parcels, each different from the others."""
    chance = random.Random(seed)
    made: list[Message] = []
    parcel = 0
    while len(made) < count:
        parcel += 1
        story = (
            canonical_story(f"CN{parcel:06d}", chance)
            if parcel % 3 == 0
            else ups_story(f"1ZTEST{parcel:010d}", chance)
        )
        made += story
    return made[:count]
