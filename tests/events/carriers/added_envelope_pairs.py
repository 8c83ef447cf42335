"""Pairs of envelopes with the same scans, of InPost, DHL's other networks and the
carriers that came with them.
"""

import json
from typing import Any, Final
from urllib.parse import quote_plus

from tests.events.carriers.envelope_pairs import pair


def _shipx(at: str, status: str, event: str | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Build a webhook and the history that says the same, two seconds earlier."""
    payload = {
        "shipment_id": 9,
        "tracking_number": "600000000000000000000009",
        **({} if event else {"status": status}),
    }
    push = {
        "event_ts": f"2026-03-01 {at}:42 +0100",
        "event": event or "shipment_status_changed",
        "organization_id": 1,
        "payload": payload,
    }
    step = {
        "status": status,
        "origin_status": "XYZ",
        "agency": "WAW",
        "datetime": f"2026-03-01T{at}:40.000+01:00",
    }
    return push, {
        "tracking_number": "600000000000000000000009",
        "status": status,
        "tracking_details": [step],
    }


_INPOST: Final = {
    "eventCode": "LMD.9017",
    "location": {"type": "ADDRESS", "city": "Leeds", "country": "GB"},
}


def _dhl_ecommerce(number: str, *, nested: bool, **more: Any) -> dict[str, Any]:
    event = {
        "date": "2026-03-01",
        "time": "14:10:00",
        "timeZone": "CT",
        "primaryEventId": 600,
        "primaryEventDescription": "DELIVERED",
        **more,
    }
    package = {"trackingId": number}
    return {
        "packages": [
            {"events": [event], "package": package} if nested else {"events": [event], **package}
        ]
    }


_NZ_POST: Final = {"event_edifact_code": "13", "event_datetime": "2026-03-01T10:05:13"}


def _bring(words: str, city: str) -> dict[str, Any]:
    event = {
        "description": words,
        "status": "IN_TRANSIT",
        "city": city,
        "countryCode": "NO",
        "dateIso": "2026-03-01T08:27:08+01:00",
    }
    return {
        "consignmentSet": [
            {"packageSet": [{"packageNumber": "370000000000000009", "eventSet": [event]}]}
        ]
    }


def _trackingmore(**step: Any) -> dict[str, Any]:
    return {"data": [{"tracking_number": "LZ000000009SG", "origin_info": {"trackinfo": [step]}}]}


_NINJA: Final = {
    "status": "Delivered",
    "is_parcel_on_rts_leg": False,
    "delivery_information": {"state": "Left at Doorstep"},
}

_DHL_NUMBER: Final = "9374800000000000000018"


def _postnl(**status: str) -> dict[str, object]:
    return {"Barcode": "3SDEVC000000001", "Status": {"StatusCode": "7", "PhaseCode": "3", **status}}


def _postnord(status_field: str, **event: object) -> dict[str, object]:
    step = {
        "eventTime": "2024-07-31T02:20:00",
        "eventCode": "31",
        status_field: "EN_ROUTE",
        **event,
    }
    return {
        "TrackingInformationResponse": {
            "shipments": [{"shipmentId": "UB1SE", "items": [{"itemId": "UB1SE", "events": [step]}]}]
        }
    }


_ONTRAC_EVENT: Final = "<Events><Event><Status>RD</Status><Description>{}</Description><EventTime>2015-04-17T07:18:13</EventTime>{}</Event></Events>"
_ONTRAC_PLACE: Final = (
    "<Facility>SanFrancisco</Facility><City>SOUTH SAN"
    " FRANCISCO</City><State>CA</State><Zip>94080</Zip>"
)


def _ontrac(words: str, around: str, number: str) -> str:
    return around.format(
        _ONTRAC_EVENT.format(words, _ONTRAC_PLACE) + f"<{number}>D10010466126749</{number}>"
    )


CORREIOS_RASTRO: Final = {
    "objetos": [
        {
            "codObjeto": "AA000000009BR",
            "eventos": [
                {
                    "codigo": "BDE",
                    "tipo": "01",
                    "dtHrCriado": "2026-03-03T23:30:03",
                    "descricao": "Objeto entregue",
                }
            ],
        }
    ]
}


def _cainiao(words: str, **more: object) -> dict[str, object]:
    step = {"actionCode": "SC_INBOUND_SUCCESS", "standerdDesc": words, "timeZone": "GMT+8", **more}
    return {"mailNo": "LP00000000000009", "detailList": [step]}


_JT_SCANS: Final = [
    {
        "scanTime": "2026-03-03 09:12:11",
        "scanTypeCode": "10",
        "desc": "Picked up",
        "timeZone": "GMT+08:00",
    }
]

ADDED_PAIRS: Final = (
    pair("inpost", "webhook_and_history", *_shipx("15:08", "ready_to_pickup")),
    pair(
        "inpost",
        "webhook_of_a_new_shipment_and_history",
        *_shipx("08:00", "confirmed", "shipment_confirmed"),
    ),
    pair(
        "inpost",
        "event_and_answer",
        {
            **_INPOST,
            "trackingNumber": "630000000000000000000009",
            "eventId": "00000000-0000-4000-8000-000000000009#LMD.9017",
            "timestamp": "2026-03-01T14:02:55.374675Z",
        },
        {
            "parcels": [
                {
                    "trackingNumber": "630000000000000000000009",
                    "events": [{**_INPOST, "eventTimestamp": "2026-03-01T15:02:55.374+01:00"}],
                }
            ]
        },
    ),
    pair(
        "dhl_ecommerce",
        "answer_and_public_page",
        _dhl_ecommerce(
            _DHL_NUMBER,
            nested=True,
            location="Austin, TX, US",
            secondaryEventId=1601,
            postalCode="78701",
        ),
        _dhl_ecommerce(f"42078701{_DHL_NUMBER}", nested=False, location="Austin, TX, US"),
    ),
    pair(
        "ninjavan",
        "webhook_and_answer",
        {
            **_NINJA,
            "tracking_id": "TESTSG000000009",
            "timestamp": "2026-03-01T15:04:05+0800",
            "event": "Delivered, Left at Doorstep",
        },
        {
            "tracking_number": "TESTSG000000009",
            "events": [{**_NINJA, "timestamp": "2026-03-01T07:04:05Z"}],
        },
    ),
    pair(
        "dhl_parcel_nl",
        "answer_and_view",
        [
            {
                "barcode": "3STEST0000000009",
                "events": [
                    {
                        "category": "PROBLEM",
                        "localTimestamp": "2026-03-02T12:31:22.475+01:00",
                        "status": "NOT_HOME",
                        "timestamp": "2026-03-02T11:31:22.475Z",
                    }
                ],
            }
        ],
        [
            {
                "barcode": "3STEST0000000009",
                "view": {
                    "phases": [
                        {
                            "phase": "IN_DELIVERY",
                            "events": [
                                {
                                    "timestamp": "2026-03-02T11:31:22Z",
                                    "key": "NOT_HOME",
                                    "exception": True,
                                }
                            ],
                        }
                    ]
                },
            }
        ],
    ),
    pair(
        "nzpost",
        "push_and_answer",
        {
            "tracking_reference": "CL000000009NZ",
            "tracking_events": [
                {
                    **_NZ_POST,
                    "status_description": "Picked up",
                    "event_description": "Picked up at Penrose",
                }
            ],
        },
        {
            "success": True,
            "results": {
                "tracking_reference": "CL000000009NZ",
                "tracking_events": [{**_NZ_POST, "status_description": "Acceptance"}],
            },
        },
    ),
    pair(
        "bring",
        "english_and_norwegian",
        _bring("The parcel is registered", "OSLO"),
        _bring("Sendingen er registrert", ""),
    ),
    pair(
        "sendcloud",
        "v3_push_and_answer",
        {
            "event_type": "parcels.event.created",
            "data": {
                "parcel": {
                    "parcel_id": 9,
                    "tracking_number": "3STEST000000009",
                    "carrier_code": "dpd",
                },
                "event": {
                    "timestamp": "2026-03-01T10:30:00Z",
                    "phase": "in_transit",
                    "exception": "sorting_delay",
                    "sub_status": "traffic",
                },
            },
        },
        {
            "tracking_numbers": [{"carrier_code": "dpd", "tracking_number": "3STEST000000009"}],
            "events": [
                {
                    "event_at": "2026-03-01T11:30:00+01:00",
                    "status_code": "sorting_delay",
                    "sub_status_code": "traffic",
                }
            ],
        },
    ),
    pair(
        "trackingmore",
        "two_versions",
        _trackingmore(
            checkpoint_date="2026-03-01 09:25",
            tracking_detail="Processed Through Facility",
            checkpoint_delivery_status="transit",
            checkpoint_delivery_substatus="transit002",
            location="Chicago,IL,US",
        ),
        _trackingmore(
            Date="2026-03-01 09:25:00",
            StatusDescription="Processed through facility",
            checkpoint_status="transit",
            substatus="transit001",
            Details="CHICAGO IL",
        ),
    ),
    pair(
        "postnl",
        "answer_and_updated_shipments",
        {
            "CurrentStatus": {
                "Shipment": _postnl(
                    TimeStamp="08-11-2022 10:13:20", StatusDescription="Shipment out for delivery"
                )
            }
        },
        [
            _postnl(
                Timestamp="2022-11-08T10:13:20", StatusDescription="Zending in distributieproces"
            )
        ],
    ),
    pair(
        "postnord",
        "english_and_swedish",
        _postnord(
            "status",
            eventDescription="Under transportation",
            location={"city": "Segeltorp", "countryCode": "SWE"},
        ),
        _postnord("eventStatus", eventDescription="Under transport"),
    ),
    pair(
        "correios",
        "rastro_and_app",
        CORREIOS_RASTRO,
        {
            "codObjeto": "AA000000009BR",
            "eventos": [
                {
                    "codigo": "BDE",
                    "tipo": "01",
                    "dtHrCriado": {
                        "date": "2026-03-03 23:30:03.000000",
                        "timezone_type": 3,
                        "timezone": "America/Sao_Paulo",
                    },
                    "descricao": "Objeto entregue ao destinatário",
                    "unidade": {
                        "tipo": "Unidade de Tratamento",
                        "endereco": {"cidade": "Recife", "uf": "PE"},
                    },
                }
            ],
        },
    ),
    pair(
        "correios",
        "rastro_and_soap",
        CORREIOS_RASTRO,
        (
            "<buscaEventosResponse><return><objeto><numero>AA000000009BR</numero><evento><tipo>BDE</tipo>"
            "<status>1</status>"
            "<data>03/03/2026</data><hora>23:30</hora><descricao>Object"
            " delivered</descricao><cidade>RECIFE</cidade><uf>PE</uf></evento>"
            "</objeto></return></buscaEventosResponse>"
        ),
    ),
    pair(
        "cainiao",
        "english_with_text_and_chinese_with_number",
        {
            "module": [
                _cainiao(
                    "[Shatian Town] Processing at sorting center", timeStr="2026-03-04 08:00:00"
                )
            ],
            "success": True,
        },
        _cainiao("分拣中心处理中", time=1772582400000),
    ),
    pair(
        "jtexpress",
        "push_and_answer",
        (
            "bizContent="
            + quote_plus(json.dumps([{"billCode": "630000000009", "details": _JT_SCANS}]))
        ),
        {
            "code": "1",
            "msg": "success",
            "data": [
                {
                    "billCode": "630000000009",
                    "details": [
                        {**_JT_SCANS[0], "desc": "Diambil", "scanNetworkCity": "Johor Bahru"}
                    ],
                }
            ],
        },
    ),
    pair(
        "ontrac",
        "courier_and_public_status",
        _ontrac(
            "Package received at the facility.",
            "<ShipGlobalCourier><Tracking><Shipment>{}</Shipment></Tracking></ShipGlobalCourier>",
            "TrackingNbr",
        ),
        _ontrac(
            "PACKAGE RECEIVED AT FACILITY",
            "<OnTracShipmentStatus><Packages><Package>{}</Package></Packages></OnTracShipmentStatus>",
            "Tracking",
        ),
    ),
)
