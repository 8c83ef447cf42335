"""The same scans in two envelopes, of formats that came after those of the other modules."""

from typing import Any, Final

from tests.events.carriers.envelope_pairs import pair

_PARCEL_DE_EVENT: Final = '<data name="{}" event-timestamp="01.03.2026 14:05" ice="ULFMV" ric="UNLDD" standard-event-code="EE"/>'
PARCEL_DE_PIECE: Final = (
    '<data name="piece-shipment-list" code="0"><data name="piece-shipment" piece-code="00340000000000000009" ruecksendung="false">'
    f'<data name="piece-event-list">{_PARCEL_DE_EVENT.format("piece-event")}</data></data></data>'
)
PARCEL_DE_EVENTS: Final = (
    f'<data name="pieceeventlist" code="0" piece-identifier="340000000000000009">{_PARCEL_DE_EVENT.format("pieceevent")}</data>'
)

_BLUE_DART: Final[dict[str, Any]] = {"ScanGroupType": "T", "ScanType": "UD", "ScanTime": "14:05"}
BLUE_DART_PUSH: Final = {
    "statustracking": [
        {
            "Shipment": {
                "WaybillNo": "90000000009",
                "Scans": {"ScanDetail": [{**_BLUE_DART, "ScanCode": "092", "ScanDate": "01-03-2026", "ScannedLocationCity": "Delhi"}]},
            }
        }
    ]
}
BLUE_DART_ANSWER: Final = (
    '<ShipmentData><Shipment WaybillNo="90000000009"><Scans><ScanDetail><Scan>SHIPMENT OUT FOR DELIVERY</Scan><ScanCode>92</ScanCode>'
    "<ScanType>UD</ScanType><ScanGroupType>T</ScanGroupType><ScanDate>01-Mar-2026</ScanDate><ScanTime>14:05</ScanTime>"
    "<ScannedLocation>DELHI HUB</ScannedLocation></ScanDetail></Scans></Shipment></ShipmentData>"
)

LATER_PAIRS: Final = (
    pair("dhl_parcel_de", "piece_and_its_events", PARCEL_DE_PIECE, PARCEL_DE_EVENTS),
    pair("bluedart", "push_and_answer", BLUE_DART_PUSH, BLUE_DART_ANSWER),
)
