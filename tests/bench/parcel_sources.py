"""Bodies in which UPS, AfterShip and Shippo tell the same parcel's journey, step by step."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

MORNING: Final = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CHICAGO: Final = ZoneInfo("America/Chicago")
JOURNEY: Final = (
    "info_received",
    "picked_up",
    "in_transit",
    "exception",
    "in_transit",
    "out_for_delivery",
    "delivered",
)
SOURCES: Final = ("ups", "aftership", "shippo")
UPS_CODES: Final = (
    ("M", "MP"),
    ("P", "PU"),
    ("I", "DP"),
    ("X", "1E"),
    ("I", "AR"),
    ("I", "OT"),
    ("D", "FS"),
)
AFTERSHIP_CODES: Final = (
    "InfoReceived_001",
    "InTransit_002",
    "InTransit_003",
    "Exception_016",
    "InTransit_007",
    "OutForDelivery_001",
    "Delivered_001",
)
SHIPPO_CODES: Final = (
    ("PRE_TRANSIT", "information_received"),
    ("TRANSIT", "package_accepted"),
    ("TRANSIT", "package_departed"),
    ("TRANSIT", "delayed"),
    ("TRANSIT", "package_arrived"),
    ("TRANSIT", "out_for_delivery"),
    ("DELIVERED", "delivered"),
)


def ups(number: str, steps: Sequence[int], _carrier: str = "ups") -> bytes:
    """Build UPS's alert of the last of these steps."""
    at = MORNING + timedelta(hours=steps[-1])
    local, (kind, code) = at.astimezone(CHICAGO), UPS_CODES[steps[-1]]
    return json.dumps(
        {
            "trackingNumber": number,
            "localActivityDate": f"{local:%Y%m%d}",
            "localActivityTime": f"{local:%H%M%S}",
            "gmtActivityDate": f"{at:%Y%m%d}",
            "gmtActivityTime": f"{at:%H%M%S}",
            "activityLocation": {
                "city": "Chicago",
                "stateProvince": "IL",
                "postalCode": "60632",
                "country": "US",
            },
            "activityStatus": {"type": kind, "code": code, "description": code},
        }
    ).encode()


def aftership(number: str, steps: Sequence[int], carrier: str = "ups") -> bytes:
    checkpoints = [
        {
            "tag": AFTERSHIP_CODES[step].split("_")[0],
            "subtag": AFTERSHIP_CODES[step],
            "checkpoint_time": (MORNING + timedelta(hours=step)).isoformat(),
            "city": "Chicago",
            "state": "IL",
            "country_iso3": "USA",
        }
        for step in steps
    ]
    last = AFTERSHIP_CODES[steps[-1]]
    tracking = {
        "tracking_number": number,
        "slug": carrier,
        "tag": last.split("_")[0],
        "subtag": last,
        "checkpoints": checkpoints,
    }
    return json.dumps({"event": "tracking_update", "msg": tracking}).encode()


def shippo(number: str, steps: Sequence[int], carrier: str = "ups") -> bytes:
    history = [
        {
            "status": SHIPPO_CODES[step][0],
            "substatus": {"code": SHIPPO_CODES[step][1]},
            # the local time with a Z behind it, as Shippo prints it
            "status_date": (
                f"{(MORNING + timedelta(hours=step)).astimezone(CHICAGO):%Y-%m-%dT%H:%M:%SZ}"
            ),
            "location": {"city": "Chicago", "state": "IL", "zip": "60632", "country": "US"},
        }
        for step in steps
    ]
    track = {"carrier": carrier, "tracking_number": number, "tracking_history": history}
    return json.dumps({"event": "track_updated", "data": track}).encode()


WRITERS: Final[Mapping[str, Callable[..., bytes]]] = {
    "ups": ups,
    "aftership": aftership,
    "shippo": shippo,
}
"""By source: number, steps, and the carrier that an aggregator names."""
