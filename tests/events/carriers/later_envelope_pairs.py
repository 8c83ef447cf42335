"""Pairs of envelopes with the same scans, of formats that came after those of the other modules."""

from typing import Final

from tests.events.carriers.envelope_pairs import pair

_PARCEL_DE_EVENT: Final = (
    '<data name="{}" event-timestamp="01.03.2026 14:05" ice="ULFMV" ric="UNLDD"'
    ' standard-event-code="EE"/>'
)


_SHIPROCKET_SCAN: Final = {
    "date": "2026-03-01 14:05:00",
    "status": "X-DDD3FD",
    "activity": "Dispatched - Out for delivery",
    "location": "Pune_Hub",
    "sr-status": "17",
    "sr-status-label": "OUT FOR DELIVERY",
}

_PACKETA_FIELDS: Final = {
    "dateTime": "2026-03-01T14:05:00",
    "statusCode": "5",
    "statusText": "-",
    "branchId": "79",
}


LATER_PAIRS: Final = (
    pair(
        "dhl_parcel_de",
        "piece_and_its_events",
        (
            '<data name="piece-shipment-list" code="0"><data name="piece-shipment"'
            ' piece-code="00340000000000000009" ruecksendung="false"><data'
            f' name="piece-event-list">{_PARCEL_DE_EVENT.format("piece-event")}</data></data></data>'
        ),
        (
            '<data name="pieceeventlist" code="0"'
            f' piece-identifier="340000000000000009">{_PARCEL_DE_EVENT.format("pieceevent")}</data>'
        ),
    ),
    pair(
        "bluedart",
        "push_and_answer",
        {
            "statustracking": [
                {
                    "Shipment": {
                        "WaybillNo": "90000000009",
                        "Scans": {
                            "ScanDetail": [
                                {
                                    "ScanGroupType": "T",
                                    "ScanType": "UD",
                                    "ScanTime": "14:05",
                                    "ScanCode": "092",
                                    "ScanDate": "01-03-2026",
                                    "ScannedLocationCity": "Delhi",
                                }
                            ]
                        },
                    }
                }
            ]
        },
        (
            '<ShipmentData><Shipment WaybillNo="90000000009"><Scans><ScanDetail><Scan>SHIPMENT OUT FOR'
            " DELIVERY</Scan><ScanCode>92</ScanCode><ScanType>UD</ScanType><ScanGroupType>T</ScanGroupType>"
            "<ScanDate>01-Mar-2026</ScanDate><ScanTime>14:05</ScanTime><ScannedLocation>DELHI"
            " HUB</ScannedLocation></ScanDetail></Scans></Shipment></ShipmentData>"
        ),
    ),
    pair(
        "inpost",
        "shipx_and_app",
        {
            "tracking_number": "600000000000000000000009",
            "tracking_details": [
                {"status": "delivered", "datetime": "2026-03-01T14:05:00.000+01:00"}
            ],
        },
        {
            "shipmentNumber": "600000000000000000000009",
            "eventLog": [
                {"type": "PARCEL_STATUS", "name": "DELIVERED", "date": "2026-03-01T13:05:00.000Z"}
            ],
        },
    ),
    pair(
        "shiprocket",
        "webhook_and_answer",
        {
            "awb": "19000000000009",
            "shipment_status_id": 17,
            "scans": [_SHIPROCKET_SCAN],
        },
        {
            "tracking_data": {
                "shipment_track": [{"awb_code": "19000000000009"}],
                "shipment_track_activities": [_SHIPROCKET_SCAN],
            }
        },
    ),
    pair(
        "cdek",
        "webhook_and_order",
        {
            "type": "ORDER_STATUS",
            "attributes": {
                "cdek_number": "1100000009",
                "status_code": "11",
                "code": "TAKEN_BY_COURIER",
                "status_date_time": "2026-03-01T14:05:00+0300",
                "city_name": "Казань",
            },
        },
        {
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
        },
    ),
    pair(
        "packeta",
        "xml_and_json",
        (
            "<response><status>ok</status><barcode>Z0000000009</barcode><result><record>"
            + "".join(f"<{name}>{value}</{name}>" for name, value in _PACKETA_FIELDS.items())
            + "</record></result></response>"
        ),
        {"status": "ok", "barcode": "Z0000000009", "result": _PACKETA_FIELDS},
    ),
)
