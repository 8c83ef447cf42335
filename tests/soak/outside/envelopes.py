"""Envelopes of carriers' scans: the shapes of their bodies, written by hand from their formats;
nothing here is the service's.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final, NamedTuple

MARK: Final = "SIGNERMARK"
"""Begins everything personal that the ledger invents, and stands nowhere else."""
ARIZONA: Final = timezone(timedelta(hours=-7))
"""Without daylight saving, so that its wall clock needs no table."""
DUBAI: Final = timezone(timedelta(hours=4))
ZERO: Final = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


class Printed(NamedTuple):
    """A scan before a carrier puts it into its words."""

    step: str
    at: datetime
    town: str
    number: str

    @property
    def person(self) -> str:
        return MARK + self.number


class Code(NamedTuple):
    """Printed code, and the status that it means; None: nobody knows yet."""

    printed: tuple[str, ...]
    status: str | None


Writer = Callable[[str, Sequence[Printed], int], bytes]
"""Number, scans from the oldest on, place of the last one: a body."""


def _codes(**steps: str) -> Mapping[str, Code]:
    means = {
        "label": "info_received",
        "pickup": "picked_up",
        "depart": "in_transit",
        "arrive": "in_transit",
        "delay": "exception",
        "out": "out_for_delivery",
        "attempt": "delivery_attempted",
        "delivered": "delivered",
        "back": "returning",
        "strange": None,
    }
    found = {}
    for step, text in steps.items():
        printed, _, other = text.partition("=")
        found[step] = Code(tuple(printed.split()), other or means[step])
    return found


UPS: Final = _codes(
    label="M MP", pickup="P PU", depart="I DP", arrive="I AR", delay="X 1E", out="I OT", attempt="X 48", delivered="D FS", back="X 8H",
    strange="X ZQ7",
)  # fmt: skip
FEDEX: Final = _codes(
    label="OC",
    pickup="PU",
    depart="DP",
    arrive="AR",
    delay="DY",
    out="OD",
    attempt="DE 08",
    delivered="DL",
    back="RS",
    strange="Q9",
)
USPS: Final = _codes(
    label="GX",
    pickup="03",
    depart="T1",
    arrive="10",
    out="OF",
    attempt="02",
    delivered="01",
    back="09",
    strange="ZQ",
)
DHL_EXPRESS: Final = _codes(
    label="SA=picked_up", pickup="PU", depart="DF", arrive="AR", delay="OH", out="WC", attempt="NH", delivered="OK", back="RT=returned",
    strange="Z9",
)  # fmt: skip
EASYPOST: Final = _codes(
    label="pre_transit label_created",
    pickup="in_transit received_at_origin_facility",
    depart="in_transit departed_facility",
    arrive="in_transit arrived_at_facility",
    delay="in_transit delayed",
    out="out_for_delivery out_for_delivery",
    attempt="failure delivery_exception=exception",
    delivered="delivered arrived_at_destination",
    back="return_to_sender return",
)
DCSA: Final = {
    "label": Code(("EQUIPMENT", "GTIN", "ACT"), "in_transit"),
    "pickup": Code(("EQUIPMENT", "LOAD", "ACT"), "in_transit"),
    "depart": Code(("EQUIPMENT", "DISC", "ACT"), "in_transit"),
    "arrive": Code(("EQUIPMENT", "GTOT", "ACT"), "in_transit"),
    "out": Code(("EQUIPMENT", "LOAD", "ACT"), "in_transit"),
    "delivered": Code(("EQUIPMENT", "GTOT", "ACT"), "in_transit"),
}


def ups_alert(number: str, seen: Sequence[Printed], _place: int) -> bytes:
    """Build a Track Alert: one scan, the local time next to the same in GMT."""
    scan = seen[-1]
    kind, code = UPS[scan.step].printed
    local, gmt = scan.at.astimezone(ARIZONA), scan.at.astimezone(UTC)
    alert: dict[str, Any] = {
        "trackingNumber": number,
        "localActivityDate": f"{local:%Y%m%d}",
        "localActivityTime": f"{local:%H%M%S}",
        "activityLocation": {
            "city": scan.town,
            "stateProvince": "AZ",
            "postalCode": "85004",
            "country": "US",
        },
        "activityStatus": {
            "type": kind,
            "code": code,
            "description": f"{scan.step} for {scan.person}",
        },
        "gmtActivityDate": f"{gmt:%Y%m%d}",
        "gmtActivityTime": f"{gmt:%H%M%S}",
    }
    return json.dumps(
        alert | ({"receivedBy": scan.person} if scan.step == "delivered" else {})
    ).encode()


def ups_xml(number: str, seen: Sequence[Printed], _place: int) -> bytes:
    """Build the old Track answer: the whole history, newest first, capitals, local times."""
    activities = []
    for scan in reversed(seen):
        kind, code = UPS[scan.step].printed
        local = scan.at.astimezone(ARIZONA)
        activities.append(
            f"<Activity><ActivityLocation><Address><City>{scan.town.upper()}</City>"
            "<StateProvinceCode>AZ</StateProvinceCode>"
            "<PostalCode>85004</PostalCode><CountryCode>US</CountryCode></Address>"
            f"<SignedForByName>{scan.person if scan.step == 'delivered' else ''}</SignedForByName>"
            "</ActivityLocation>"
            f"<Status><StatusType><Code>{kind}</Code><Description>{scan.step.upper()} FOR"
            f" {scan.person}</Description></StatusType>"
            f"<StatusCode><Code>{code}</Code></StatusCode></Status>"
            f"<Date>{local:%Y%m%d}</Date><Time>{local:%H%M%S}</Time></Activity>"
        )
    return (
        "<?xml"
        ' version="1.0"?><TrackResponse><Response><ResponseStatusCode>1</ResponseStatusCode>'
        "</Response><Shipment><Package>"
        f"<TrackingNumber>{number}</TrackingNumber>{''.join(activities)}</Package></Shipment>"
        "</TrackResponse>"
    ).encode()


def fedex_ground(number: str, seen: Sequence[Printed], place: int) -> bytes:
    return _fedex(number, seen, place, "FDEG", {})


def fedex_express(number: str, seen: Sequence[Printed], place: int) -> bytes:
    """Build the same parcel as another part of FedEx prints it: another end of the
    unique id, and a facility.
    """
    return _fedex(number, seen, place, "FX", {"locationId": "TUSA"})


def _fedex(
    number: str, seen: Sequence[Printed], place: int, part: str, further: Mapping[str, str]
) -> bytes:
    scans = []
    for scan in reversed(seen):
        code, *reason = FEDEX[scan.step].printed
        scans.append(
            {
                "date": scan.at.astimezone(ARIZONA).isoformat(),
                "eventType": code,
                "eventDescription": f"{scan.step} for {scan.person}",
                "exceptionCode": reason[0] if reason else "",
                "exceptionDescription": "",
                "scanLocation": {
                    "city": scan.town.upper(),
                    "stateOrProvinceCode": "AZ",
                    "postalCode": "85701",
                    "countryCode": "US",
                },
                "derivedStatusCode": code,
                **further,
            }
        )
    result: dict[str, Any] = {
        "trackingNumberInfo": {
            "trackingNumber": number,
            "trackingNumberUniqueId": f"12030~{number}~{part}",
            "carrierCode": "FDXG",
        },
        "latestStatusDetail": {"code": scans[0]["eventType"]},
        "scanEvents": scans,
        "push": place,
    }
    if any(scan.step == "delivered" for scan in seen):
        result["deliveryDetails"] = {"receivedByName": seen[-1].person}
    return json.dumps(
        {"output": {"completeTrackResults": [{"trackingNumber": number, "trackResults": [result]}]}}
    ).encode()


def usps(number: str, seen: Sequence[Printed], _place: int) -> bytes:
    """Build an answer of Web Tools: the newest scan as summary, the others as details,
    local times of minutes.
    """
    details = "".join(
        f"<TrackDetail>{_usps_scan(scan)}</TrackDetail>" for scan in reversed(seen[:-1])
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><TrackResponse><TrackInfo ID="{number}">'
        f"<TrackSummary>{_usps_scan(seen[-1])}</TrackSummary>{details}</TrackInfo></TrackResponse>"
    ).encode()


def usps_barcode(number: str, seen: Sequence[Printed], place: int) -> bytes:
    """Build the number as its barcode has it: 420 and the postcode of the addressee before it."""
    return usps(f"42085201{number}", seen, place)


def _usps_scan(scan: Printed) -> str:
    local = scan.at.astimezone(ARIZONA)
    return (
        f"<EventTime>{local:%-I:%M} {local:%p}</EventTime><EventDate>{local:%B %-d, %Y}</EventDate>"
        f"<Event>{scan.step} {scan.person}</Event>"
        f"<EventCity>{scan.town.upper()}</EventCity><EventState>AZ</EventState>"
        "<EventZIPCode>85201</EventZIPCode><EventCountry/>"
        f"<Name>{scan.person if scan.step == 'delivered' else ''}</Name>"
        f"<EventCode>{USPS[scan.step].printed[0]}</EventCode>"
    ).replace(" AM<", " am<").replace(" PM<", " pm<")  # fmt: skip


def dhl_express(number: str, seen: Sequence[Printed], _place: int) -> bytes:
    """Build an XML-PI answer: the whole history, oldest first, local times."""
    events = []
    for scan in seen:
        local = scan.at.astimezone(DUBAI)
        events.append(
            f"<ShipmentEvent><Date>{local:%Y-%m-%d}</Date><Time>{local:%H:%M:%S}</Time>"
            f"<ServiceEvent><EventCode>{DHL_EXPRESS[scan.step].printed[0]}</EventCode>"
            f"<Description>{scan.step}"
            f" {scan.person}</Description></ServiceEvent>"
            f"<Signatory>{scan.person if scan.step == 'delivered' else ''}</Signatory><ServiceArea>"
            f"<ServiceAreaCode>DXB</ServiceAreaCode><Description>{scan.town}"
            " - AE</Description></ServiceArea></ShipmentEvent>"
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><req:TrackingResponse'
        ' xmlns:req="http://www.dhl.com"><AWBInfo>'
        f"<AWBNumber>{number}</AWBNumber><Status><ActionStatus>success</ActionStatus></Status>"
        f"<ShipmentInfo>{''.join(events)}</ShipmentInfo></AWBInfo></req:TrackingResponse>"
    ).encode()


def easypost(number: str, seen: Sequence[Printed], _place: int) -> bytes:
    """Build a tracker: the whole history, oldest first, in UTC."""
    details = [
        {
            "object": "TrackingDetail",
            "message": f"{scan.step} for {scan.person}",
            "status": EASYPOST[scan.step].printed[0],
            "status_detail": EASYPOST[scan.step].printed[1],
            "datetime": f"{scan.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "source": "USPS",
            "tracking_location": {
                "city": scan.town,
                "state": "AZ",
                "country": "US",
                "zip": "85281",
            },
        }
        for scan in seen
    ]
    tracker = {
        "object": "Tracker",
        "tracking_code": number,
        "status": details[-1]["status"],
        "status_detail": details[-1]["status_detail"],
        "signed_by": seen[-1].person if any(scan.step == "delivered" for scan in seen) else None,
        "carrier": "USPS",
        "tracking_details": details,
    }
    return json.dumps(
        {"object": "Event", "description": "tracker.updated", "result": tracker}
    ).encode()


def dcsa(number: str, seen: Sequence[Printed], place: int) -> bytes:
    """Build the newest event of a container, and the one before it again; its ids
    are the carrier's own.
    """
    first = place + 1 - len(seen)
    events = [_dcsa_event(number, scan, first + offset) for offset, scan in enumerate(seen)]
    return json.dumps(events[-2:]).encode()


def dcsa_retraction(number: str, scan: Printed, place: int) -> bytes:
    """Build a retraction: it never happened."""
    event = _dcsa_event(number, scan, place)
    return json.dumps(
        [event | {"eventID": f"{number}-r", "retractedEventID": event["eventID"]}]
    ).encode()


def _dcsa_event(number: str, scan: Printed, place: int) -> dict[str, Any]:
    kind, code, classifier = DCSA[scan.step].printed
    return {
        "eventID": f"{number}-{place}",
        "eventType": kind,
        "eventClassifierCode": classifier,
        "eventDateTime": f"{scan.at.astimezone(DUBAI).isoformat()}",
        "equipmentEventTypeCode": code,
        "equipmentReference": number,
        "emptyIndicatorCode": "LADEN",
        "changeRemark": f"{scan.step} for {scan.person}",
        "eventLocation": {"locationName": scan.town, "UNLocationCode": "AEJEA"},
    }


def canonical(number: str, event_id: str, status: str | None, at: datetime, **more: str) -> bytes:
    """Build one event as its sender states it."""
    event = {
        "carrier_id": "canonical",
        "event_id": event_id,
        "tracking_number": number,
        "occurred_at": at.isoformat(),
        "status": status,
        "description": f"{status} for {MARK}{number}",
        "signed_by": MARK + number if status == "delivered" else None,
        **more,
    }
    return json.dumps({name: value for name, value in event.items() if value is not None}).encode()
