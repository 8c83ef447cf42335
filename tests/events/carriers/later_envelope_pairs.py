"""Pairs of envelopes with the same scans, of formats that came after those of the other modules."""

from typing import Any, Final

from tests.events.carriers.envelope_pairs import pair

_PARCEL_DE_EVENT: Final = (
    '<data name="{}" event-timestamp="01.03.2026 14:05" ice="ULFMV" ric="UNLDD"'
    ' standard-event-code="EE"/>'
)
PARCEL_DE_PIECE: Final = (
    '<data name="piece-shipment-list" code="0"><data name="piece-shipment"'
    ' piece-code="00340000000000000009" ruecksendung="false"><data'
    f' name="piece-event-list">{_PARCEL_DE_EVENT.format("piece-event")}</data></data></data>'
)
PARCEL_DE_EVENTS: Final = (
    '<data name="pieceeventlist" code="0"'
    f' piece-identifier="340000000000000009">{_PARCEL_DE_EVENT.format("pieceevent")}</data>'
)

_BLUE_DART: Final[dict[str, Any]] = {"ScanGroupType": "T", "ScanType": "UD", "ScanTime": "14:05"}
BLUE_DART_PUSH: Final = {
    "statustracking": [
        {
            "Shipment": {
                "WaybillNo": "90000000009",
                "Scans": {
                    "ScanDetail": [
                        {
                            **_BLUE_DART,
                            "ScanCode": "092",
                            "ScanDate": "01-03-2026",
                            "ScannedLocationCity": "Delhi",
                        }
                    ]
                },
            }
        }
    ]
}
BLUE_DART_ANSWER: Final = (
    '<ShipmentData><Shipment WaybillNo="90000000009"><Scans><ScanDetail><Scan>SHIPMENT OUT FOR'
    " DELIVERY</Scan><ScanCode>92</ScanCode><ScanType>UD</ScanType><ScanGroupType>T</ScanGroupType>"
    "<ScanDate>01-Mar-2026</ScanDate><ScanTime>14:05</ScanTime><ScannedLocation>DELHI"
    " HUB</ScannedLocation></ScanDetail></Scans></Shipment></ShipmentData>"
)

_SHIPROCKET_SCAN: Final = {
    "date": "2026-03-01 14:05:00",
    "status": "X-DDD3FD",
    "activity": "Dispatched - Out for delivery",
    "location": "Pune_Hub",
    "sr-status": "17",
    "sr-status-label": "OUT FOR DELIVERY",
}
SHIPROCKET_WEBHOOK: Final = {
    "awb": "19000000000009",
    "shipment_status_id": 17,
    "scans": [_SHIPROCKET_SCAN],
}
SHIPROCKET_ANSWER: Final = {
    "tracking_data": {
        "shipment_track": [{"awb_code": "19000000000009"}],
        "shipment_track_activities": [_SHIPROCKET_SCAN],
    }
}

_PACKETA_FIELDS: Final = {
    "dateTime": "2026-03-01T14:05:00",
    "statusCode": "5",
    "statusText": "-",
    "branchId": "79",
}
PACKETA_XML: Final = (
    "<response><status>ok</status><barcode>Z0000000009</barcode><result><record>"
    + "".join(f"<{name}>{value}</{name}>" for name, value in _PACKETA_FIELDS.items())
    + "</record></result></response>"
)
PACKETA_JSON: Final = {"status": "ok", "barcode": "Z0000000009", "result": _PACKETA_FIELDS}

CDEK_WEBHOOK: Final = {
    "type": "ORDER_STATUS",
    "attributes": {
        "cdek_number": "1100000009",
        "status_code": "11",
        "code": "TAKEN_BY_COURIER",
        "status_date_time": "2026-03-01T14:05:00+0300",
        "city_name": "Казань",
    },
}
CDEK_ORDER: Final = {
    "entity": {
        "cdek_number": "1100000009",
        "statuses": [
            {
                "code": "TAKEN_BY_COURIER",
                "name": "-",
                "date_time": "2026-03-01T11:05:00+0000",
                "city": "г. Казань",
            }
        ],
    }
}

INPOST_SHIPX: Final = {
    "tracking_number": "600000000000000000000009",
    "tracking_details": [{"status": "delivered", "datetime": "2026-03-01T14:05:00.000+01:00"}],
}
INPOST_APP: Final = {
    "shipmentNumber": "600000000000000000000009",
    "eventLog": [
        {"type": "PARCEL_STATUS", "name": "DELIVERED", "date": "2026-03-01T13:05:00.000Z"}
    ],
}

LATER_PAIRS: Final = (
    pair("dhl_parcel_de", "piece_and_its_events", PARCEL_DE_PIECE, PARCEL_DE_EVENTS),
    pair("bluedart", "push_and_answer", BLUE_DART_PUSH, BLUE_DART_ANSWER),
    pair("inpost", "shipx_and_app", INPOST_SHIPX, INPOST_APP),
    pair("shiprocket", "webhook_and_answer", SHIPROCKET_WEBHOOK, SHIPROCKET_ANSWER),
    pair("cdek", "webhook_and_order", CDEK_WEBHOOK, CDEK_ORDER),
    pair("packeta", "xml_and_json", PACKETA_XML, PACKETA_JSON),
)
