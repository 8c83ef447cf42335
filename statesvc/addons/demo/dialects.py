"""Dialects of the sample carriers: their codes, words and documents. Pure: a parcel in, a body out.

`seen` are the scans that the carrier pushes, oldest first. UPS pushes the last one alone; all
others repeat the history.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Final
from xml.sax.saxutils import escape

import orjson

from statesvc.addons.demo.parcels import Parcel, ParcelScan, ParcelStep

Writer = Callable[[Parcel, Sequence[ParcelScan]], bytes]
Words = Mapping[ParcelStep, tuple[str, str]]

JSON: Final = "application/json"
XML: Final = "application/xml"

UPS_CODES: Final[Mapping[ParcelStep, tuple[str, str, str]]] = {
    ParcelStep.LABEL: ("M", "MP", "Shipper created a label, UPS has not received the package yet"),
    ParcelStep.PICKUP: ("P", "PU", "Pickup ParcelScan"),
    ParcelStep.DEPART: ("I", "DP", "Departed from Facility"),
    ParcelStep.ARRIVE: ("I", "AR", "Arrived at Facility"),
    ParcelStep.DELAY: ("X", "1E", "Severe weather conditions have delayed delivery"),
    ParcelStep.OUT: ("I", "OT", "Out For Delivery"),
    ParcelStep.ATTEMPT: ("X", "48", "The receiver was not available for delivery"),
    ParcelStep.DELIVERED: ("D", "FS", "Delivered"),
    ParcelStep.RETURN: (
        "X",
        "8H",
        "The receiver refused the package, it is being returned to the sender",
    ),
    ParcelStep.STRANGE: ("X", "ZQ7", "Rerouted by the night shift"),
}
FEDEX_CODES: Final[Words] = {
    ParcelStep.LABEL: ("OC", "Shipment information sent to FedEx"),
    ParcelStep.PICKUP: ("PU", "Picked up"),
    ParcelStep.DEPART: ("DP", "Departed FedEx location"),
    ParcelStep.ARRIVE: ("AR", "Arrived at FedEx location"),
    ParcelStep.DELAY: ("DY", "Delay"),
    ParcelStep.OUT: ("OD", "On FedEx vehicle for delivery"),
    ParcelStep.ATTEMPT: ("DE", "Delivery exception"),
    ParcelStep.DELIVERED: ("DL", "Delivered"),
    ParcelStep.RETURN: ("RS", "Returning package to shipper"),
    ParcelStep.STRANGE: ("Q9", "Held by the night shift"),
}
DHL_CODES: Final[Words] = {
    ParcelStep.LABEL: ("pre-transit", "The instruction data was provided by the sender"),
    ParcelStep.PICKUP: ("transit", "The shipment was picked up"),
    ParcelStep.DEPART: ("transit", "The shipment left the parcel center"),
    ParcelStep.ARRIVE: ("transit", "The shipment reached the parcel center"),
    ParcelStep.DELAY: ("failure", "The shipment is delayed"),
    ParcelStep.OUT: ("transit", "The shipment was loaded onto the delivery vehicle"),
    ParcelStep.ATTEMPT: ("failure", "The recipient was not present"),
    ParcelStep.DELIVERED: ("delivered", "The shipment was delivered"),
    ParcelStep.RETURN: ("failure", "The shipment is returned to the sender"),
    ParcelStep.STRANGE: ("transit", "The night shift inspected the shipment"),
}
DHL_EXPRESS_CODES: Final[Words] = {
    ParcelStep.LABEL: ("SA", "Shipment acceptance"),
    ParcelStep.PICKUP: ("PU", "Shipment picked up"),
    ParcelStep.DEPART: ("DF", "Departed from DHL facility"),
    ParcelStep.ARRIVE: ("AR", "Arrived at DHL delivery facility"),
    ParcelStep.DELAY: ("OH", "Shipment is on hold"),
    ParcelStep.OUT: ("WC", "With delivery courier"),
    ParcelStep.ATTEMPT: ("NH", "Delivery attempted, recipient not home"),
    ParcelStep.DELIVERED: ("OK", "Shipment delivered"),
    ParcelStep.RETURN: ("RT", "Returned to shipper"),
    ParcelStep.STRANGE: ("Z9", "Seen by the night shift"),
}
USPS_CODES: Final[Words] = {
    ParcelStep.LABEL: ("GX", "Shipping Label Created, USPS Awaiting Item"),
    ParcelStep.PICKUP: ("03", "Accepted at USPS Origin Facility"),
    ParcelStep.DEPART: ("T1", "Departed USPS Regional Facility"),
    ParcelStep.ARRIVE: ("10", "Arrived at USPS Regional Facility"),
    ParcelStep.DELAY: ("DX", "In Transit, Arriving Late"),
    ParcelStep.OUT: ("OF", "Out for Delivery"),
    ParcelStep.ATTEMPT: ("02", "Notice Left (No Authorized Recipient Available)"),
    ParcelStep.DELIVERED: ("01", "Delivered, In/At Mailbox"),
    ParcelStep.RETURN: ("09", "Return to Sender"),
    ParcelStep.STRANGE: ("ZQ", "Seen by the Night Shift"),
}
EASYPOST_CODES: Final[Words] = {
    ParcelStep.LABEL: ("pre_transit", "label_created"),
    ParcelStep.PICKUP: ("in_transit", "received_at_origin_facility"),
    ParcelStep.DEPART: ("in_transit", "departed_facility"),
    ParcelStep.ARRIVE: ("in_transit", "arrived_at_facility"),
    ParcelStep.DELAY: ("in_transit", "delayed"),
    ParcelStep.OUT: ("out_for_delivery", "out_for_delivery"),
    ParcelStep.ATTEMPT: ("failure", "delivery_attempted"),
    ParcelStep.DELIVERED: ("delivered", "arrived_at_destination"),
    ParcelStep.RETURN: ("return_to_sender", "return"),
    ParcelStep.STRANGE: ("in_transit", "seen_by_night_shift"),
}


def ups(parcel: Parcel, seen: Sequence[ParcelScan]) -> bytes:
    """Write a Track Alert: the last scan alone, the local time next to the same in GMT."""
    scan = seen[-1]
    kind, code, words = UPS_CODES[scan.step]
    gmt = scan.at.astimezone(UTC)
    alert = {
        "trackingNumber": parcel.number,
        "localActivityDate": f"{scan.at:%Y%m%d}",
        "localActivityTime": f"{scan.at:%H%M%S}",
        "activityLocation": {
            "city": scan.town.name,
            "stateProvince": scan.town.region,
            "postalCode": scan.town.postal_code,
            "country": scan.town.country,
        },
        "activityStatus": {"type": kind, "code": code, "description": words},
        "scheduledDeliveryDate": f"{parcel.scans[-1].at:%Y%m%d}",
        "gmtActivityDate": f"{gmt:%Y%m%d}",
        "gmtActivityTime": f"{gmt:%H%M%S}",
    }
    if scan.step is ParcelStep.DELIVERED:
        alert |= {
            "actualDeliveryDate": f"{scan.at:%Y%m%d}",
            "actualDeliveryTime": f"{scan.at:%H%M%S}",
            "receivedBy": parcel.signer,
        }
    return orjson.dumps(alert)


def fedex(parcel: Parcel, seen: Sequence[ParcelScan]) -> bytes:
    """Write a Track reply: the whole history, newest first."""
    newest = seen[-1]
    result: dict[str, object] = {
        "trackingNumberInfo": {
            "trackingNumber": parcel.number,
            "trackingNumberUniqueId": f"12030~{parcel.number}~FDEG",
            "carrierCode": "FDXG",
        },
        "latestStatusDetail": {
            "code": FEDEX_CODES[newest.step][0],
            "description": FEDEX_CODES[newest.step][1],
        },
        "scanEvents": [_fedex_scan(scan) for scan in reversed(seen)],
    }
    if newest.step is ParcelStep.DELIVERED:
        result["deliveryDetails"] = {"receivedByName": parcel.signer}
    reply = {
        "output": {
            "completeTrackResults": [{"trackingNumber": parcel.number, "trackResults": [result]}]
        }
    }
    return orjson.dumps(reply)


def _fedex_scan(scan: ParcelScan) -> dict[str, object]:
    code, words = FEDEX_CODES[scan.step]
    reason = {ParcelStep.ATTEMPT: ("08", "Customer not available or business closed")}.get(
        scan.step, ("", "")
    )
    return {
        "date": scan.at.isoformat(),
        "eventType": code,
        "eventDescription": words,
        "exceptionCode": reason[0],
        "exceptionDescription": reason[1],
        "scanLocation": {
            "city": scan.town.name.upper(),
            "stateOrProvinceCode": scan.town.region,
            "postalCode": scan.town.postal_code,
            "countryCode": scan.town.country,
        },
        "derivedStatusCode": code,
    }


def dhl_unified(parcel: Parcel, seen: Sequence[ParcelScan]) -> bytes:
    """Write a shipment of the unified push: the whole history, newest first."""
    events = [
        {
            "timestamp": scan.at.isoformat(),
            "location": {
                "address": {
                    "countryCode": scan.town.country,
                    "postalCode": scan.town.postal_code,
                    "addressLocality": scan.town.name,
                }
            },
            "statusCode": DHL_CODES[scan.step][0],
            "description": DHL_CODES[scan.step][1],
        }
        for scan in reversed(seen)
    ]
    shipment = {"id": parcel.number, "service": "parcel-de", "status": events[0], "events": events}
    return orjson.dumps({"shipments": [shipment]})


def dhl_express(parcel: Parcel, seen: Sequence[ParcelScan]) -> bytes:
    """Write an XML-PI tracking response: the whole history, oldest first, local times."""
    events = "".join(
        f"<ShipmentEvent><Date>{scan.at:%Y-%m-%d}</Date><Time>{scan.at:%H:%M:%S}</Time>"
        f"<ServiceEvent><EventCode>{code}</EventCode><Description>{escape(words)}</Description>"
        "</ServiceEvent><Signatory>"
        f"{escape(parcel.signer) if scan.step is ParcelStep.DELIVERED else ''}</Signatory>"
        f"<ServiceArea><ServiceAreaCode>{scan.town.name[:3].upper()}</ServiceAreaCode>"
        f"<Description>{escape(scan.town.name)}"
        f" - {scan.town.country}</Description></ServiceArea></ShipmentEvent>"
        for scan in seen
        for code, words in [DHL_EXPRESS_CODES[scan.step]]
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><req:TrackingResponse'
        ' xmlns:req="http://www.dhl.com"><AWBInfo>'
        f"<AWBNumber>{parcel.number}</AWBNumber><Status><ActionStatus>success</ActionStatus>"
        "</Status>"
        f"<ShipmentInfo>{events}</ShipmentInfo></AWBInfo></req:TrackingResponse>"
    ).encode()


def usps(parcel: Parcel, seen: Sequence[ParcelScan]) -> bytes:
    """Write a Web Tools TrackResponse: the newest scan as summary, the others as
    details, minutes only.
    """
    *older, newest = seen
    details = "".join(
        f"<TrackDetail>{_usps_scan(scan, parcel)}</TrackDetail>" for scan in reversed(older)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><TrackResponse><TrackInfo ID="{parcel.number}">'
        f"<TrackSummary>{_usps_scan(newest, parcel)}</TrackSummary>{details}</TrackInfo>"
        "</TrackResponse>"
    ).encode()


def _usps_scan(scan: ParcelScan, parcel: Parcel) -> str:
    code, words = USPS_CODES[scan.step]
    return (
        f"<EventTime>{scan.at:%-I:%M}"
        f" {f'{scan.at:%p}'.lower()}</EventTime><EventDate>{scan.at:%B %-d, %Y}</EventDate>"
        f"<Event>{escape(words)}</Event><EventCity>{scan.town.name.upper()}</EventCity>"
        f"<EventState>{scan.town.region}</EventState>"
        f"<EventZIPCode>{scan.town.postal_code}</EventZIPCode><EventCountry/>"
        f"<Name>{escape(parcel.signer) if scan.step is ParcelStep.DELIVERED else ''}</Name>"
        f"<EventCode>{code}</EventCode>"
    )


def easypost(parcel: Parcel, seen: Sequence[ParcelScan]) -> bytes:
    """Write a `tracker.updated` event: the whole history, oldest first, in UTC."""
    newest = seen[-1]
    details = [
        {
            "object": "TrackingDetail",
            "message": EASYPOST_CODES[scan.step][1].replace("_", " "),
            "status": EASYPOST_CODES[scan.step][0],
            "status_detail": EASYPOST_CODES[scan.step][1],
            "datetime": f"{scan.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "source": "USPS",
            "tracking_location": {
                "city": scan.town.name,
                "state": scan.town.region,
                "country": scan.town.country,
                "zip": scan.town.postal_code,
            },
        }
        for scan in seen
    ]
    tracker = {
        "object": "Tracker",
        "tracking_code": parcel.number,
        "status": EASYPOST_CODES[newest.step][0],
        "status_detail": EASYPOST_CODES[newest.step][1],
        "updated_at": f"{newest.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "signed_by": parcel.signer if newest.step is ParcelStep.DELIVERED else None,
        "carrier": "USPS",
        "tracking_details": details,
    }
    return orjson.dumps({"object": "Event", "description": "tracker.updated", "result": tracker})


# Content type and writer of each sample carrier.
DIALECTS: Final[Mapping[str, tuple[str, Writer]]] = {
    "ups": (JSON, ups),
    "fedex": (JSON, fedex),
    "dhl_unified": (JSON, dhl_unified),
    "dhl_express": (XML, dhl_express),
    "usps": (XML, usps),
    "easypost": (JSON, easypost),
}
