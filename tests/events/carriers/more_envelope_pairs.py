"""Further pairs: of aggregators, and of carriers whose envelopes differ in little."""

from typing import Any, Final

from tests.events.carriers.added_envelope_pairs import ADDED_PAIRS
from tests.events.carriers.envelope_pairs import CARRIER_PAIRS, Pair, pair
from tests.events.carriers.later_envelope_pairs import LATER_PAIRS


def _delhivery(**shipment: Any) -> dict[str, Any]:
    return {"Shipment": {"AWB": "1400000000099", **shipment}}


_SHIPPO: Final = {
    "status": "TRANSIT",
    "status_details": "Arrived",
    "status_date": "2026-03-01T14:05:00Z",
    "location": {"city": "Reno", "state": "NV", "zip": "89501", "country": "US"},
}


def _shippo(object_id: str) -> dict[str, Any]:
    return {
        "event": "track_updated",
        "data": {
            "tracking_number": "SH1",
            "tracking_history": [{**_SHIPPO, "object_id": object_id}],
        },
    }


def _teleship(code: str) -> list[dict[str, Any]]:
    return [
        {
            "timestamp": "2026-03-01T14:05:00Z",
            "code": code,
            "location": "London, GB",
            "description": "Arrived",
        }
    ]


def _royal_mail(**piece: Any) -> dict[str, Any]:
    return {"mailPieces": [{"mailPieceId": "RM000000009GB", **piece}]}


_V1_EVENT: Final = {
    "a": "2026-02-03 11:45",
    "c": "",
    "d": "RENO, NV 89501",
    "z": "Arrived at Post Office",
}


def _v1(**track: Any) -> dict[str, Any]:
    return {
        "event": "TRACKING_UPDATED",
        "data": {"number": "9400000000000000000099", "track": track},
    }


def _v2(**event: Any) -> dict[str, Any]:
    said = {"description": "Arrived at Post Office", "sub_status": "InTransit_Arrival", **event}
    tracking = {"providers": [{"events": [said]}]}
    return {
        "event": "TRACKING_UPDATED",
        "data": {"number": "9400000000000000000099", "track_info": {"tracking": tracking}},
    }


def _amazon(**event: Any) -> dict[str, Any]:
    said = {"eventCode": "Departed", "eventTime": "2026-03-01T14:05:00Z", **event}
    return {"payload": {"trackingId": "23AA47DE2B3B9", "eventHistory": [said]}}


def _amazon_place(**more: str) -> dict[str, str]:
    return {"city": "Seattle", "countryCode": "US", **more}


_SENDLE: Final = {
    "event_type": "Delivered",
    "scan_time": "2026-03-03T08:20:00Z",
    "description": "Parcel delivered",
    "location": "Sydney, NSW",
}
_EASYPOST: Final = {
    "object": "Tracker",
    "tracking_code": "EZ9",
    "status": "in_transit",
    "tracking_details": [
        {
            "status": "in_transit",
            "status_detail": "arrived_at_facility",
            "datetime": "2026-03-01T14:05:00Z",
            "message": "Arrived",
        }
    ],
}
_SHIPENGINE: Final = {
    "tracking_number": "SE9",
    "status_code": "IT",
    "events": [
        {
            "occurred_at": "2026-03-01T14:05:00Z",
            "event_code": "AR",
            "status_code": "IT",
            "city_locality": "RENO",
        }
    ],
}

EPCIS_XML: Final = """<e:EPCISDocument xmlns:e="urn:epcglobal:epcis:xsd:2"><EPCISBody><EventList><ObjectEvent>
<eventTime>2026-02-01T10:00:00-06:00</eventTime><eventTimeZoneOffset>-06:00</eventTimeZoneOffset>EVENT_ID
<epcList><epc>urn:epc:id:sscc:0614141.9</epc></epcList><action>OBSERVE</action><bizStep>urn:epcglobal:cbv:bizstep:departing</bizStep>
<disposition>urn:epcglobal:cbv:disp:in_transit</disposition><readPoint><id>urn:epc:id:sgln:0614141.0.1</id></readPoint>
</ObjectEvent></EventList></EPCISBody></e:EPCISDocument>"""


def _epcis(step: str, **event: str) -> dict[str, Any]:
    said = {
        "type": "ObjectEvent",
        "eventTime": "2026-02-01T16:00:00Z",
        "epcList": ["urn:epc:id:sscc:0614141.9"],
        "bizStep": step,
        "disposition": "in_transit",
        "readPoint": {"id": "https://id.gs1.org/414/0614141000012/254/1"},
        **event,
    }
    return {"type": "EPCISDocument", "epcisBody": {"eventList": [said]}}


def _landmark(at: str) -> str:
    return f"""<TrackResponse><Result><Packages><Package><LandmarkTrackingNumber>LTN9</LandmarkTrackingNumber><Events><Event>
<Status>Item processed</Status><DateTime>{at}</DateTime><Location>Toronto, ON</Location><EventCode>75</EventCode></Event></Events></Package>
</Packages></Result></TrackResponse>"""


def _spring(**event: Any) -> dict[str, Any]:
    said = {
        "DateTime": "2026-03-01 15:05:00",
        "Code": "21",
        "City": "Köln",
        "Country": "DE",
        **event,
    }
    return {"Shipment": {"TrackingNumber": "SP9", "Events": [said]}}


def _smartkargo(**location: str) -> list[dict[str, Any]]:
    at = "2026-03-01T14:05:00"
    said = {
        "prefix": "123",
        "airWaybill": "00000099",
        "eventType": "RCS",
        "eventDate": at,
        "eventLocation": "YYZ",
        "location": location,
    }
    return [said]


def _la_poste(label: str, at: str) -> dict[str, Any]:
    return {"shipment": {"idShip": "LP9", "event": [{"code": "ET1", "label": label, "date": at}]}}


def _yanwen(at: str, zone: str) -> dict[str, Any]:
    checkpoint = {
        "time_stamp": at,
        "time_zone": zone,
        "tracking_status": "PU10",
        "location": "Shenzhen",
        "message": "Picked up",
    }
    return {"result": [{"waybill_number": "YW9", "checkpoints": [checkpoint]}]}


PAIRS: Final[tuple[Pair, ...]] = (
    *CARRIER_PAIRS,
    *(
        pair(
            "delhivery",
            "push_and_answer",
            _delhivery(
                NSLCode="EOD-74",
                Status={
                    "Status": "Pending",
                    "StatusType": "UD",
                    "StatusDateTime": "2026-02-05T18:10:42.767",
                    "StatusLocation": "Pune_DC",
                    "Instructions": "Not taken",
                },
            ),
            {
                "ShipmentData": [
                    _delhivery(
                        Scans=[
                            {
                                "ScanDetail": {
                                    "Scan": "Pending",
                                    "ScanType": "UD",
                                    "ScanDateTime": "2026-02-05T18:10:42",
                                    "ScannedLocation": "PUNE_DC",
                                    "StatusCode": "EOD-74",
                                }
                            }
                        ]
                    )
                ]
            },
        ),
        pair(
            "sf_express",
            "push_and_answer",
            """<Request service="RoutePushService"><Body><WaybillRoute id="5348054"
 mailno="SF1000000009" acceptTime="2026-03-02 14:36:36"
 acceptAddress="深圳市" remark="已签收" opCode="80"/></Body></Request>""",
            {
                "routeResps": [
                    {
                        "mailNo": "SF1000000009",
                        "routes": [
                            {
                                "acceptTime": "2026-03-02 14:36:36",
                                "acceptAddress": "深圳市",
                                "opCode": "80",
                                "remark": "已签收,感谢使用",
                            }
                        ],
                    }
                ]
            },
        ),
        pair(
            "shippo",
            "history_and_state",
            _shippo("a1"),
            {"data": {"tracking_number": "SH1", "tracking_status": _SHIPPO}},
        ),
        pair("shippo", "ids_that_do_not_stay", _shippo("a1"), _shippo("b2")),
        pair(
            "teleship",
            "webhook_and_answer",
            {
                "eventName": "shipment.updated",
                "data": {"trackingNumber": "TS9", "events": _teleship("ARRIVED_HUB")},
            },
            {"trackingNumber": "TS9", "events": _teleship("arrived_hub")},
        ),
        pair(
            "royalmail",
            "events_and_summary",
            _royal_mail(
                events=[
                    {
                        "eventCode": "EVNMI",
                        "eventName": "Sorted",
                        "eventDateTime": "2026-03-01T09:00:00+00:00",
                        "locationName": "Leeds MC",
                    }
                ]
            ),
            _royal_mail(
                summary={
                    "lastEventCode": "EVNMI",
                    "lastEventDateTime": "2026-03-01T09:00:00+00:00",
                    "lastEventLocationName": "Leeds MC",
                }
            ),
        ),
        pair(
            "parcelone",
            "soap_and_rest",
            """<getTrackingsResponse><getTrackingsResult><ShipmentTrackingResult><ActionResult>
<TrackingID>100000000009</TrackingID></ActionResult><Trackings><TrackingResult><TrackingDateTime>2026-03-04T14:30:00</TrackingDateTime>
<TrackingStatusCode>DELIVERED</TrackingStatusCode><TrackingLocation>Munich, Germany</TrackingLocation></TrackingResult></Trackings>
</ShipmentTrackingResult></getTrackingsResult></getTrackingsResponse>""",
            {
                "results": {
                    "TrackingID": "100000000009",
                    "Events": [
                        {
                            "DateTime": "2026-03-04 14:30:00",
                            "Location": "Munich, Germany",
                            "StatusCode": "Delivered",
                            "Status": "Zugestellt",
                        }
                    ],
                }
            },
        ),
        pair(
            "17track",
            "newest_and_older",
            _v1(e=10, z0=_V1_EVENT, z1=[_V1_EVENT]),
            _v1(e=40, z0={"a": "2079-01-01 00:00", "c": "", "d": "", "z": ""}, z1=[_V1_EVENT]),
        ),
        pair(
            "17track",
            "v1_and_v2",
            _v1(e=10, z0=_V1_EVENT, z1=[_V1_EVENT]),
            _v2(time_iso="2026-02-03T11:45:12-08:00", location="RENO, NV"),
        ),
        pair(
            "17track",
            "with_and_without_offset",
            _v2(time_iso="2026-02-03T11:45:12-08:00", address={"city": "RENO", "state": "NV"}),
            _v2(
                time_iso=None,
                time_raw={"date": "2026-02-03", "time": "11:45:12", "timezone": None},
                location="RENO, NV 89501",
            ),
        ),
        pair(
            "amazon",
            "v1_and_v2",
            _amazon(location=_amazon_place()),
            _amazon(
                shipmentType="FORWARD",
                location=_amazon_place(stateOrRegion="WA", postalCode="98101"),
            ),
        ),
        pair(
            "sendle",
            "answer_and_webhook",
            {"sendle_reference": "S3ND99", "tracking_events": [_SENDLE]},
            {
                "sendle_reference": "S3ND99",
                "event_id": "1",
                **_SENDLE,
                "location_data": {"country": "AU"},
            },
        ),
        pair("easypost", "webhook_and_answer", {"object": "Event", "result": _EASYPOST}, _EASYPOST),
        pair(
            "shipengine",
            "webhook_and_answer",
            {"resource_type": "API_TRACK", "data": _SHIPENGINE},
            _SHIPENGINE,
        ),
        pair(
            "epcis",
            "xml_and_json",
            EPCIS_XML.replace("EVENT_ID", ""),
            _epcis("https://ref.gs1.org/cbv/BizStep-departing"),
        ),
        pair(
            "epcis",
            "xml_and_json_with_ids",
            EPCIS_XML.replace("EVENT_ID", "<eventID>ev-9</eventID>"),
            _epcis("departing", eventID="ev-9"),
        ),
        pair(
            "landmark",
            "two_formats_of_time",
            _landmark("03/01/2026 02:05:00 PM"),
            _landmark("2026-03-01 14:05:00"),
        ),
        pair("spring", "with_and_without_epoch", _spring(Timestamp="1772373900"), _spring()),
        pair(
            "smartkargo",
            "with_and_without_zone",
            _smartkargo(timezone="America/Toronto"),
            _smartkargo(),
        ),
        pair(
            "laposte",
            "french_and_english",
            _la_poste("Votre colis est arrivé", "2026-03-01T14:05:00+01:00"),
            _la_poste("Your parcel arrived", "2026-03-01T13:05:00Z"),
        ),
        pair(
            "yanwen",
            "two_zones",
            _yanwen("2026-03-01T14:05:00", "+8"),
            _yanwen("2026-03-01T06:05:00", "+00:00"),
        ),
    ),
    *ADDED_PAIRS,
    *LATER_PAIRS,
)
