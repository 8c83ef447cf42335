"""Pairs of envelopes with the same scans, in the shape that the carrier documents: another format,
language, offset or version.

A pair is (carrier, name, one body, the other body). Both say the same scans in the same order.
"""

import json
from typing import Any, Final, NamedTuple


class Pair(NamedTuple):
    """Two bodies that say the same."""

    carrier_id: str
    name: str
    one: bytes
    other: bytes


def pair(carrier_id: str, name: str, one: object, other: object) -> Pair:
    """Make a pair of bodies as text, or as what their JSON says."""
    return Pair(carrier_id, name, _body(one), _body(other))


def _body(said: object) -> bytes:
    return said.encode() if isinstance(said, str) else json.dumps(said).encode()


def _aftership(at: str, **more: Any) -> dict[str, Any]:
    checkpoint = {
        "subtag": "InTransit_003",
        "tag": "InTransit",
        "checkpoint_time": at,
        "city": "Leeds",
        "message": "Arrived",
        **more,
    }
    return {"msg": {"tracking_number": "AS1000001", "slug": "evri", "checkpoints": [checkpoint]}}


UPS_STATUS: Final = {"type": "I", "code": "AR", "description": "Arrived at Facility"}
UPS_ALERT: Final = {
    "trackingNumber": "1ZTEST0009",
    "localActivityDate": "20260301",
    "localActivityTime": "140500",
    "gmtActivityDate": "20260301",
    "gmtActivityTime": "190500",
    "activityLocation": {
        "city": "LOUISVILLE",
        "stateProvince": "KY",
        "postalCode": "40213",
        "country": "US",
    },
    "activityStatus": UPS_STATUS,
}
UPS_API: Final = {
    "trackResponse": {
        "shipment": [
            {
                "inquiryNumber": "1ZTEST0009",
                "package": [
                    {
                        "trackingNumber": "1ZTEST0009",
                        "activity": [
                            {
                                "date": "20260301",
                                "time": "140500",
                                "gmtOffset": "-05:00",
                                "status": {**UPS_STATUS, "statusCode": "005"},
                                "location": {
                                    "slic": "4009",
                                    "address": {
                                        "city": "Louisville",
                                        "stateProvince": "KY",
                                        "countryCode": "US",
                                        "country": "US",
                                    },
                                },
                            }
                        ],
                    }
                ],
            }
        ]
    }
}
UPS_XML: Final = """<TrackResponse><Shipment><Package><TrackingNumber>1ZTEST0009</TrackingNumber><Activity>
<ActivityLocation><Address><City>LOUISVILLE</City><StateProvinceCode>KY</StateProvinceCode><CountryCode>US</CountryCode></Address>
</ActivityLocation><Status><StatusType><Code>I</Code><Description>ARRIVAL SCAN</Description></StatusType>
<StatusCode><Code>AR</Code></StatusCode></Status><Date>20260301</Date><Time>140500</Time></Activity></Package></Shipment></TrackResponse>"""

USPS_NUMBER: Final = "9405500000000000000017"


def _usps_v3(number: str = USPS_NUMBER) -> dict[str, Any]:
    event = {
        "eventType": "Arrived at Post Office",
        "eventCode": "07",
        "eventTimestamp": "2026-03-01T07:45:31",
        "GMTTimestamp": "2026-03-01T13:45:31Z",
        "GMTOffset": "-06:00",
        "eventCity": "AUSTIN",
        "eventState": "TX",
        "eventZIP": "78701",
    }
    return {"trackingNumber": number, "trackingEvents": [event]}


def _usps_xml(code: str, number: str = USPS_NUMBER) -> str:
    return f"""<TrackResponse><TrackInfo ID="{number}"><TrackSummary><EventTime>7:45 am</EventTime><EventDate>March 1, 2026</EventDate>
<Event>Arrived at Post Office</Event><EventCity>AUSTIN</EventCity><EventState>TX</EventState><EventZIPCode>78701</EventZIPCode>
{code}</TrackSummary></TrackInfo></TrackResponse>"""


def _fedex(unique_id: str = "2460001000~999900003333~FX", **more: Any) -> dict[str, Any]:
    event = {
        "date": "2026-03-01T14:05:00-06:00",
        "eventType": "DL",
        "exceptionCode": "014",
        "eventDescription": "Delivered",
        "scanLocation": {
            "city": "Reno",
            "stateOrProvinceCode": "NV",
            "postalCode": "89501",
            "countryCode": "US",
        },
        **more,
    }
    info = {"trackingNumber": "999900003333", "trackingNumberUniqueId": unique_id}
    return {
        "output": {
            "completeTrackResults": [
                {"trackResults": [{"trackingNumberInfo": info, "scanEvents": [event]}]}
            ]
        }
    }


def _parcel_de(text: str, place: str, country: str) -> str:
    return f"""<data name="piece-shipment-list"><data name="piece-shipment" piece-code="00340000000000000017"><data name="piece-event-list">
<data name="piece-event" event-timestamp="01.03.2026 09:34" ice="HLDEX" ric="NHAVA" standard-event-code="ZN" event-text="{text}"
 event-location="{place}" event-country="{country}" ruecksendung="false"/></data></data></data>"""


DHL_PI: Final = """<req:TrackingResponse xmlns:req="http://www.dhl.com"><AWBInfo><AWBNumber>6600000031</AWBNumber><ShipmentInfo>
<ShipmentEvent><Date>2026-02-10</Date><Time>08:00:00</Time><ServiceEvent><EventCode>AF</EventCode>
<Description>Arrived at DHL Sort Facility HONG KONG</Description></ServiceEvent><Signatory/>
<ServiceArea><ServiceAreaCode>HKG</ServiceAreaCode><Description>HONG KONG-HONG KONG</Description></ServiceArea></ShipmentEvent>
</ShipmentInfo></AWBInfo></req:TrackingResponse>"""
DHL_SOAP: Final = DHL_PI.replace("req:TrackingResponse", "trackShipmentRequestResponse").replace(
    ' xmlns:req="http://www.dhl.com"', ""
)


def _unified(**scan: Any) -> dict[str, Any]:
    """Build both envelopes; what only one of them states is left out of the other."""
    event = {
        "timestamp": "2026-03-01T09:34:00",
        "statusCode": "transit",
        "location": {"address": {"addressLocality": "Bonn"}},
        **scan,
    }
    return {
        "shipments": [{"id": "00340000000000000018", "service": "parcel-de", "events": [event]}]
    }


def _canada_post(words: str, zone: str) -> str:
    return f"""<tracking-detail><pin>2000000000000009</pin><significant-events><occurrence><event-identifier>1302</event-identifier>
<event-date>2026-02-04</event-date><event-time>13:34:57</event-time><event-time-zone>{zone}</event-time-zone>
<event-description>{words}</event-description><event-site>OTTAWA</event-site><event-province>ON</event-province></occurrence>
</significant-events></tracking-detail>"""


def _dpd(at: str, status: str = "DELIVERED", place: str = "Hamburg (DE)") -> dict[str, Any]:
    step = {
        "status": status,
        "statusHasBeenReached": True,
        "location": place,
        "date": at,
        "label": "Zugestellt",
    }
    data = {"shipmentInfo": {"parcelLabelNumber": "01235000000009"}, "statusInfo": [step]}
    return {"parcellifecycleResponse": {"parcelLifeCycleData": data}}


def _dpd_scan(name: str) -> dict[str, Any]:
    scan = {
        "date": "2026-02-08T07:45:00",
        "scanData": {"scanType": {"name": name}, "location": "Berlin (DE)"},
    }
    data = {"shipmentInfo": {"parcelLabelNumber": "01235000000009"}, "scanInfo": {"scan": [scan]}}
    return {"parcellifecycleResponse": {"parcelLifeCycleData": data}}


CARRIER_PAIRS: Final = (
    pair("ups", "answer_with_slic_and_alert", UPS_API, UPS_ALERT),
    pair("ups", "answer_with_slic_and_xml", UPS_API, UPS_XML),
    pair("ups", "alert_and_xml", UPS_ALERT, UPS_XML),
    pair(
        "ups",
        "alert_and_capitals",
        UPS_ALERT,
        {
            "TrackResponse": {
                "Shipment": {
                    "Package": {
                        "TrackingNumber": "1ZTEST0009",
                        "Activity": {
                            "Date": "20260301",
                            "Time": "140500",
                            "Status": {"Type": "I", "Code": "AR", "Description": "Arrival Scan"},
                            "ActivityLocation": {
                                "Address": {"City": "Louisville", "CountryCode": "US"}
                            },
                        },
                    }
                }
            }
        },
    ),
    pair("usps", "v3_and_web_tools", _usps_v3(), _usps_xml("<EventCode>07</EventCode>")),
    pair("usps", "v3_and_web_tools_without_codes", _usps_v3(), _usps_xml("")),
    pair("usps", "number_with_postcode", _usps_v3(), _usps_v3(f"420 78701 {USPS_NUMBER}")),
    pair(
        "usps",
        "number_with_long_postcode",
        _usps_v3(f"420787011234{USPS_NUMBER}"),
        _usps_xml("<EventCode>07</EventCode>"),
    ),
    pair("fedex", "with_and_without_facility", _fedex(locationId="RNOA"), _fedex()),
    pair("fedex", "express_and_ground", _fedex(), _fedex("2460001000~999900003333~FDEG")),
    pair(
        "fedex",
        "json_and_xml",
        _fedex(),
        """<TrackReply xmlns="http://fedex.com/ws/track/v14"><CompletedTrackDetails><TrackDetails>
<TrackingNumber>999900003333</TrackingNumber><TrackingNumberUniqueIdentifier>2460001000~999900003333~FX</TrackingNumberUniqueIdentifier>
<Events><Timestamp>2026-03-01T14:05:00-06:00</Timestamp><EventType>DL</EventType><EventDescription>Delivered</EventDescription>
<StatusExceptionCode>014</StatusExceptionCode><Address><City>RENO</City><StateOrProvinceCode>NV</StateOrProvinceCode></Address>
<StationId>RNOA</StationId></Events></TrackDetails></CompletedTrackDetails></TrackReply>""",
    ),
    pair(
        "dhl_parcel_de",
        "english_and_german",
        _parcel_de("The shipment has been processed in the parcel center", "Cologne", "Germany"),
        _parcel_de("Die Sendung wurde im Paketzentrum bearbeitet.", "Köln", "Deutschland"),
    ),
    pair(
        "dhl_express",
        "xml_and_mydhl",
        DHL_PI,
        {
            "shipments": [
                {
                    "shipmentTrackingNumber": "6600000031",
                    "events": [
                        {
                            "date": "2026-02-10",
                            "time": "08:00:00",
                            "GMTOffset": "+08:00",
                            "typeCode": "AF",
                            "description": "Angekommen",
                            "serviceArea": [{"code": "HKG", "description": "Hong Kong-HK"}],
                        }
                    ],
                }
            ]
        },
    ),
    pair(
        "dhl_express",
        "soap_and_twin",
        DHL_SOAP,
        {
            "trackShipmentRequestResponse": {
                "trackingResponse": {
                    "TrackingResponse": {
                        "AWBInfo": {
                            "ArrayOfAWBInfoItem": [
                                {
                                    "AWBNumber": "6600000031",
                                    "ShipmentInfo": {
                                        "ShipmentEvent": {
                                            "ArrayOfShipmentEventItem": [
                                                {
                                                    "Date": "2026-02-10",
                                                    "Time": "08:00:00",
                                                    "ServiceEvent": {
                                                        "EventCode": "AF",
                                                        "Description": "Arrived",
                                                    },
                                                    "ServiceArea": {
                                                        "ServiceAreaCode": "HKG",
                                                        "Description": "Hong Kong - Hong Kong",
                                                    },
                                                }
                                            ]
                                        }
                                    },
                                }
                            ]
                        }
                    }
                }
            }
        },
    ),
    pair("dhl_express", "xml_and_soap", DHL_PI, DHL_SOAP),
    pair(
        "dhl_unified",
        "english_and_german",
        _unified(status="The shipment has been processed in the parcel center"),
        _unified(status="Die Sendung wurde im Paketzentrum bearbeitet"),
    ),
    pair(
        "dhl_unified",
        "answer_and_push",
        _unified(status="AR", description="Arrived"),
        _unified(status="AR")["shipments"][0],
    ),
    pair(
        "canadapost",
        "english_and_french",
        _canada_post("Item accepted", "EST"),
        _canada_post("Article accepté", "HNE"),
    ),
    pair(
        "canadapost",
        "detail_and_summary",
        _canada_post("Item accepted at the Post Office", "EST"),
        """<tracking-summary><pin-summary><pin>2000000000000009</pin>
<event-date-time>20260204:133457</event-date-time><event-description>Item accepted at the Post Office</event-description>
<event-type>INDUCTION</event-type><event-location>OTTAWA, ON</event-location></pin-summary></tracking-summary>""",
    ),
    pair(
        "aramex",
        "soap_and_json",
        """<ShipmentTrackingResponse><TrackingResults><TrackingResult><WaybillNumber>30000000009</WaybillNumber>
<UpdateCode>SH014</UpdateCode><UpdateDescription>Record created.</UpdateDescription><UpdateDateTime>2026-02-03T12:00:00</UpdateDateTime>
<UpdateLocation>Riyadh, Saudi Arabia</UpdateLocation><ProblemCode/></TrackingResult></TrackingResults></ShipmentTrackingResponse>""",
        {
            "TrackingResults": [
                {
                    "Key": "30000000009",
                    "Value": [
                        {
                            "UpdateCode": "SH014",
                            "UpdateDateTime": "/Date(1770109200000+0300)/",
                            "UpdateLocation": "Riyadh, Saudi Arabia",
                            "ProblemCode": "",
                        }
                    ],
                }
            ]
        },
    ),
    pair(
        "dpd",
        "times_with_and_without_seconds",
        _dpd("08.02.2026, 14:43"),
        _dpd("2/8/2026 2:43:31 PM", "Delivered"),
    ),
    pair(
        "dpd",
        "scans_of_two_countries",
        _dpd_scan("SC_3_OUT_FOR_DELIVERY"),
        _dpd_scan("SC_03_OUT_FOR_DELIVERY"),
    ),
    pair(
        "dtdc",
        "answer_and_push",
        {
            "trackHeader": {"strShipmentNo": "B00000009"},
            "trackDetails": [
                {
                    "strCode": "DLV",
                    "strAction": "Delivered",
                    "strOrigin": "PUNE APEX",
                    "strActionDate": "05022026",
                    "strActionTime": "1614",
                    "strManifestNo": "M1",
                }
            ],
        },
        {
            "shipment": {"strShipmentNo": "B00000009"},
            "shipmentStatus": [
                {
                    "strAction": "DLV",
                    "strActionDesc": "Delivered",
                    "strOrigin": "Pune Apex",
                    "strActionDate": "05022026",
                    "strActionTime": "161432",
                }
            ],
        },
    ),
    pair(
        "aftership",
        "two_offsets",
        _aftership("2026-03-01T15:29:27+01:00"),
        _aftership("2026-03-01T14:29:27.000Z"),
    ),
    pair(
        "aftership",
        "with_and_without_offset",
        _aftership("2026-03-01T15:29:27+01:00"),
        _aftership("2026-03-01T15:29:27"),
    ),
    pair(
        "aftership",
        "two_versions",
        _aftership("2026-03-01T14:29:27Z", raw_tag="ARR", country_region="GBR"),
        _aftership("2026-03-01T14:29:27Z", country_iso3="GBR", zip="LS1"),
    ),
)
