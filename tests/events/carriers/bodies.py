"""Small bodies of every carrier: those that say nothing, and those that say one thing."""

from dataclasses import dataclass
from typing import Final

WITHOUT_SCANS: Final[dict[str, tuple[bytes, ...]]] = {
    "17track": (
        b'{"event": "TRACKING_STOPPED", "data": {"number": "1", "carrier": 2}}',
        b'{"code": -18010002, "data": {"errors": []}}',
    ),
    "aftership": (b'{"meta": {"code": 4004, "message": "-"}, "data": {}}',),
    "amazon": (
        b'{"errors": [{"code": "NotFound"}]}',
        b'{"notificationType": "OTHER", "payload": {}}',
    ),
    "aramex": (
        b'{"HasErrors": true, "Notifications": [{"Code": "ERR01"}]}',
        b"<ShipmentTrackingResponse/>",
    ),
    "asendia": (
        b'{"title": "Not Found", "status": 404, "detail": "-"}',
        b'{"data": []}',
    ),
    "australiapost": (b'{"errors": [{"code": "x"}]}', b'{"tracking_results": []}'),
    "austrianpost": (
        b'{"data": {"einzelsendung": null}}',
        b'{"errors": [{"message": "-"}], "data": null}',
    ),
    "bluedart": (
        b'{"ShipmentData": {"Error": "-"}}',
        b'{"statustracking": []}',
        b"<ShipmentData><Error>-</Error></ShipmentData>",
    ),
    "bpost": (
        b'{"error": "NO_DATA_FOUND"}',
        b"<systemException/>",
        b"<b:businessException xmlns:b='x'/>",
        b"<itemTracking><itemCode>1</itemCode></itemTracking>",
    ),
    "bring": (
        b'{"apiVersion": "2", "consignmentSet": [{"error": {"code": 404}}]}',
        b'{"consignmentSet": []}',
    ),
    "cainiao": (
        b'{"module": [{"mailNo": "1", "detailList": []}], "success": true}',
        b'{"success": false}',
    ),
    "canadapost": (
        b"<messages><message><code>004</code></message></messages>",
        b"<tracking-summary/>",
        b"<wrapper/>",
    ),
    "canpar": (
        b"<trackByBarcodeResponse><return><error>x</error></return></trackByBarcodeResponse>",
        b"<Fault/>",
    ),
    "cdek": (
        b'{"type": "PRINT_FORM", "attributes": {"type": "waybill", "url": "-"}}',
        (
            b'{"requests": [{"state": "INVALID", "errors": [{"code": "v2_entity_not_found",'
            b' "message": "-"}]}]}'
        ),
        (
            b'{"entity": {"cdek_number": "1", "statuses": [{"code": "DELIVERED", "date_time":'
            b' "2026-03-01T14:05:00+0300", "deleted": true}]}}'
        ),
    ),
    "chronopost": (
        (
            b"<trackSkybillV2Response><return><errorCode>1</errorCode></return>"
            b"</trackSkybillV2Response>"
        ),
        b"<Fault/>",
    ),
    "clickpost": (),
    "correios": (
        b'{"objetos": [{"codObjeto": "1", "mensagem": "SRO-020"}]}',
        b'{"msgs": ["no"], "date": "x"}',
        (
            b"<buscaEventosResponse><return><objeto><numero>1</numero><erro>no</erro></objeto></return>"
            b"</buscaEventosResponse>"
        ),
        b"<Fault/>",
    ),
    "correos": (
        b'[{"error": {"codError": "3", "desError": "-"}, "eventos": null}]',
        b'{"codError": "1"}',
    ),
    "dcsa": (b'{"events": []}', b'{"statusCode": 404, "errors": []}'),
    "delhivery": (b'{"Error": "x"}', b'{"ShipmentData": []}'),
    "dhl_ecommerce": (
        b'{"title": "Not Found", "status": 404}',
        b'{"total": 0, "packages": []}',
    ),
    "dhl_express": (
        b'{"status": 404, "title": "Not Found", "detail": "-"}',
        (
            b"<r:ShipmentTrackingErrorResponse"
            b" xmlns:r='http://www.dhl.com'><Response/></r:ShipmentTrackingErrorResponse>"
        ),
        (
            b"<TrackingResponse><AWBInfo><AWBNumber/><Status><ActionStatus>none"
            b" found</ActionStatus></Status></AWBInfo></TrackingResponse>"
        ),
    ),
    "dhl_parcel_de": (b'<data name="piece-shipment-list" code="100" error="No data found"/>',),
    "dhl_parcel_nl": (
        b'{"key": "not_found", "message": "-"}',
        b'[{"barcode": "3S1", "events": []}]',
    ),
    "dhl_poland": (
        b"<Fault><faultcode>100</faultcode></Fault>",
        b"<getTrackAndTraceInfoResponse/>",
    ),
    "dhl_unified": (
        b'{"title": "No result found", "status": 404}',
        b'{"shipments": null}',
        (
            b'{"scope": "subscription.ready", "self":'
            b' "https://api-eu.dhl.com/tracking/push/v1/subscription/1"}'
        ),
    ),
    "dicom": (
        b'{"message": "Not found"}',
        b'{"trackingNumber": "W1", "activities": null}',
    ),
    "doordash": (),
    "dpd": (b"<Fault/>", b"<getTrackingDataResponse/>"),
    "dtdc": (b'{"statusFlag": false, "errorDetails": [{"name": "x"}]}',),
    "easypost": (
        b'{"object": "Event", "description": "tracker.updated"}',
        (
            b'{"object": "Event", "description": "batch.created", "result": {"object": "Batch",'
            b' "status": {"created": 1}}}'
        ),
        b'{"object": "Tracker", "tracking_code": "EZ7", "status": "error", "tracking_details": []}',
        b'{"error": {"code": "TRACKER.NOT_FOUND"}}',
    ),
    "easyship": (b'{"event_type": "shipment.label.created", "data": {"status": "success"}}',),
    "epcis": (
        b'{"type": "EPCISDocument", "epcisBody": {"eventList": []}}',
        b'{"title": "x", "status": 404}',
    ),
    "evri": (
        b'{"results": [], "failures": [{"uniqueId": "urn"}]}',
        b'{"message": "no"}',
    ),
    "fedex": (b'{"errors": [{"code": "TRACKING.TRACKINGNUMBER.EMPTY"}]}',),
    "fourpx": (b'{"result": "0", "msg": "failed", "errors": [{"code": "1"}], "data": null}',),
    "geodis": (b'{"ok": false, "codeErreur": "x", "contenu": null}',),
    "ghn": (
        (
            b'{"OrderCode": "G1", "Status": "picked", "Type": "update_weight", "Time":'
            b' "2026-01-01T00:00:00Z"}'
        ),
    ),
    "ghtk": (),
    "gls": (b'{"parcels": [{"requested": "1", "errorCode": "E"}]}',),
    "hermes": (b'{"message": "no"}', b'{"shipmentinfo": []}'),
    "ics_courier": (b"<Envelope><Body><Fault/></Body></Envelope>",),
    "inpost": (
        b'{"status": 404, "error": "resource_not_found", "message": "-"}',
        (
            b'{"event": "offers_prepared", "event_ts": "2026-03-01 08:00:00 +0100", "payload":'
            b' {"shipment_id": 1, "offers": []}}'
        ),
        b'{"parcels": [{"trackingNumber": "1", "events": []}]}',
    ),
    "jtexpress": (b'{"code": "0", "msg": "fail", "data": null}',),
    "karrio": (
        b'{"event": "shipment_purchased", "data": {"id": "shp_1"}}',
        b'{"event": "tracker_updated", "data": {"tracking_number": "1", "events": []}}',
    ),
    "kdniao": (
        b'{"EBusinessID": "1", "LogisticCode": "1", "Success": false, "Reason": "-", "Traces": []}',
    ),
    "kuaidi100": (
        b'{"result": false, "returnCode": "400", "message": "-"}',
        b'{"status": "abort", "message": "-", "lastResult": {"nu": "1", "data": []}}',
    ),
    "lalamove": (
        (
            b'{"eventType": "DRIVER_ASSIGNED", "data": {"order": {"orderId": "1"}, "updatedAt":'
            b' "2026-01-01T00:00:00Z"}}'
        ),
    ),
    "landmark": (b"<TrackResponse><Errors><Error/></Errors></TrackResponse>", b"<ErrorResponse/>"),
    "laposte": (b'{"returnCode": 400}', b'{"code": "UNAUTHORIZED", "message": "no"}'),
    "mercado_envios": (b'{"message": "not found", "error": "not_found", "status": 404}',),
    "morneau": (b'{"Message": {"Code": "TrackingNotFound"}}', b'{"OrderTracking": null}'),
    "nationex": (b'{"code": 404, "message": "no"}',),
    "ninjavan": (
        b'{"error": {"code": 404}}',
        b'{"tracking_number": "N1", "events": []}',
    ),
    "novaposhta": (
        b'{"success": false, "data": [], "errors": ["-"]}',
        b'{"data": [{"Number": "1", "StatusCode": "3"}]}',
    ),
    "nzpost": (
        b'{"success": false, "errors": [{"code": 1}]}',
        b'{"success": true, "results": []}',
    ),
    "omniva": (b"<events/>",),
    "ontrac": (
        b'{"Message": "no"}',
        b'{"Packages": []}',
        (
            b"<OnTracTrackingResult><Shipments/><Error>Invalid Tracking"
            b" Number</Error></OnTracTrackingResult>"
        ),
        (
            b"<OnTracUpdateResponse><Shipments><Shipment><Tracking>D1</Tracking></Shipment></Shipments>"
            b"</OnTracUpdateResponse>"
        ),
    ),
    "packeta": (
        (
            b"<response><status>fault</status><fault>PacketIdFault</fault><string>-</string>"
            b"</response>"
        ),
        b"<response><status>ok</status><result/></response>",
        b'{"status": "fault", "fault": "PacketIdFault"}',
    ),
    "parcelone": (
        b'{"success": 0, "message": "no"}',
        b'{"success": 1, "results": {"StatusCode": "UNKNOWN", "Events": []}}',
    ),
    "parcelsapp": (
        b'{"uuid": "x", "done": false, "shipments": []}',
        b'{"uuid": "x", "parcels": [], "error": "NO_REQUEST_FOUND"}',
    ),
    "pitney_bowes": (
        (
            b'{"Packages": [{"ErrorMessage": "No tracking data", "PackageTrackingEvents": null,'
            b' "TrackingNumber": "1"}]}'
        ),
        b'{"errors": [{"errorCode": "1"}]}',
    ),
    "poste_italiane": (b'{"return": {"outcome": "KO", "code": 1, "result": "-", "shipment": []}}',),
    "posti": (b'{"error": "-"}',),
    "postnl": (
        b'{"CurrentStatus": {"Warnings": [{"Code": "2"}]}}',
        b'{"Signature": {"Barcode": "3S"}}',
    ),
    "postnord": (
        (
            b'{"TrackingInformationResponse": {"compositeFault": {"faults": [{"faultCode":'
            b' "invalidIdentifier"}]}, "shipments": []}}'
        ),
        b'{"message": "no"}',
    ),
    "purolator": (b"<Envelope><Body><Fault/></Body></Envelope>",),
    "roadie": (b'[{"tracking_number": "R1", "events": ""}]',),
    "royalmail": (b'{"httpCode": "400", "errors": []}',),
    "seko": (b'{"Message": "no"}', b'[{"ConsignmentNo": "1", "Events": null}]'),
    "sendcloud": (
        (
            b'{"action": "integration_updated", "timestamp": 1, "integration": {"id": 1,'
            b' "last_fetch": "2026-03-01T10:00:00Z"}}'
        ),
        b'{"action": "integration_connected", "timestamp": 1}',
        b'{"error": {"code": 404}}',
    ),
    "sendle": (b'{"error": "not_found"}', b'{"state": "Booking", "tracking_events": []}'),
    "sf_express": (
        b'{"success": false, "errorCode": "S0001"}',
        b"<Response><Head>ERR</Head></Response>",
    ),
    "ship24": (
        b'{"trackings": []}',
        b'{"trackings": [{"metadata": {"topic": "tracking/pod"}}]}',
    ),
    "shipengine": (
        b'{"resource_type": "BATCH", "data": {}}',
        b'{"tracking_number": "1", "status_code": "UN"}',
    ),
    "shiplogic": (
        b'{"message": "not found"}',
        b'{"shipments": []}',
    ),
    "shippo": (
        b'{"event": "transaction_created", "data": {"object_id": "x"}}',
        b'{"detail": "no"}',
        b'{"tracking_status": {"status": "UNKNOWN"}, "tracking_history": []}',
    ),
    "shiprocket": (
        b'{"tracking_data": {"track_status": 0, "error": "-", "shipment_track": []}}',
        b'{"message": "-"}',
    ),
    "smartkargo": (b'{"message": "no"}', b'{"items": []}'),
    "spring": (
        b'{"ErrorLevel": 10, "Error": "not found"}',
        b'{"ErrorLevel": 0, "Shipment": {"Events": []}}',
    ),
    "teleship": (b'{"eventName": "label.generated", "data": {"events": [{"code": "x"}]}}',),
    "thailand_post": (
        b'{"response": {"items": {}}, "message": "successful", "status": true}',
        b'{"items": []}',
    ),
    "tnt": (b"<TrackResponse><Error><Code>9000</Code></Error></TrackResponse>", b"<Error/>"),
    "trackingmore": (
        (
            b'{"meta": {"code": 200}, "data": {"tracking_number": "1", "created_at":'
            b' "2026-01-01T00:00:00+00:00"}}'
        ),
        b'{"meta": {"code": 4001, "message": "-"}, "data": []}',
        b'{"tracking_number": "1", "origin_info": null}',
    ),
    "uber_direct": (
        (
            b'{"kind": "event.courier_update", "created": "2026-01-01T00:00:00Z", "delivery_id":'
            b' "del_1"}'
        ),
        b'{"kind": "error", "code": "not_found", "message": "-"}',
    ),
    "ups": (),
    "usps": (
        b'{"error": {"code": "404"}}',
        b"<Error><Number>-1</Number></Error>",
        b"<TrackResponse/>",
    ),
    "veho": (b'{"trackingInfo": ""}',),
    "viettelpost": (),
    "x12_214": (),
    "yanwen": (b'{"code": 1, "message": "failed"}', b'{"code": 0, "result": []}'),
}
"""Errors, notices and empty answers: readable, without any scan."""


@dataclass(frozen=True)
class Small:
    """A body that is too small for a file of its own."""

    carrier_id: str
    shows: str
    body: bytes
    scans: list[tuple[str | None, str | None, str, str]]
    """(number, code, status or kind, instant) of each; a scan that prints no time happened when
    the message was received.
    """
    rejected: list[str] | None = None
    """Pointers of the members that are no events, where the body is about them."""


RECEIVED = "2026-11-21T12:00:00+00:00"
USPS_EVENT = (
    b'{"eventType": "Out for Delivery", "eventTimestamp": "2026-03-07T09:10:00", "eventCode": "OF",'
    b' "eventState": "NY"}'
)
SHIPENGINE_BODY = (
    b'{"tracking_number": "1", "status_code": "%b", "carrier_status_code": "01",'
    b' "events": {"event_date": "2026-03-04T20:00:00Z", "description": "x"}}'
)

SMALL: Final = (
    Small(
        "aftership",
        "a dated proof of delivery is no list of scans",
        b'{"event": "tracking_update", "msg": {"tracking_number": "1", "proof_of_delivery":'
        b' [{"type": "photo", "created_at": "2026-07-01T10:00:00Z"}], "checkpoints":'
        b' [{"checkpoint_time": "2026-07-01T10:00:00Z", "tag": "Delivered", "subtag":'
        b' "Delivered_001"}]}}',
        [("1", "Delivered_001", "delivered", "2026-07-01T10:00:00+00:00")],
        [],
    ),
    Small(
        "canpar",
        "the service as JSON pads its codes",
        b'{"result": [{"barcode": "D1", "events": [{"code": "DEL ", "local_date_time": "20260105'
        b' 100000", "address": {"city": "SUDBURY", "province": "ON"}}]}]}',
        [("D1", "DEL", "delivered", "2026-01-05T10:00:00-05:00")],
    ),
    Small(
        "gls",
        "MyGLS prints times of .NET",
        b'{"ParcelNumber": 55, "ParcelStatusList": [{"StatusCode": "55", "StatusDate":'
        b' "/Date(1778243400000+0200)/", "StatusDescription": "-"}, {"StatusCode": "5",'
        b' "StatusDate": "soon"}]}',
        [("55", "55", "available_for_pickup", "2026-05-08T12:30:00+00:00")],
        ["/ParcelStatusList/1"],
    ),
    Small(
        "bring",
        "a push of Event Cast is one event",
        b'{"status": "DELIVERED_SENDER", "id": "1", "shipment": "7", "package": "37", "created":'
        b' "2026-03-16T14:58:48+0000"}',
        [("37", "DELIVERED_SENDER", "returned", "2026-03-16T14:58:48+00:00")],
    ),
    Small(
        "clickpost",
        "updated orders are a list of statuses",
        b'{"result": [{"waybill": "W1", "clickpost_status_code": 1, "timestamp": "2026-04-15'
        b' 20:22:43", "status": "001"}]}',
        [("W1", "1", "info_received", "2026-04-15T20:22:43+05:30")],
    ),
    Small(
        "easyship",
        "the webhook as it is documented prints no time",
        b'{"event_type": "shipment.tracking.status.changed", "tracking_status": {"status": "To be'
        b' returned", "tracking_number": "5"}}',
        [("5", "To be returned", "returning", RECEIVED)],
    ),
    Small(
        "purolator",
        "the REST service prints numbers as codes, in local time",
        b'{"shipment": [{"package": [{"pin": "520", "events": [{"dateTime": "2026-02-04 18:05:00",'
        b' "code": "9550", "location": {"city": "Toronto", "provinceState": "ON", "countryCode":'
        b' "CA"}}]}]}]}',
        [("520", "9550", "available_for_pickup", "2026-02-04T18:05:00-05:00")],
    ),
    Small(
        "dtdc",
        "an answer in XML prints words, and the delivery in its header only",
        b'<DTDCREPLY><CONSIGNMENT><CNHEADER><FIELD NAME="strShipmentNo" VALUE="A1"/><FIELD'
        b' NAME="strStatus" VALUE="DELIVERED"/><FIELD NAME="strStatusTransOn"'
        b' VALUE="10072026"/><FIELD NAME="strStatusTransTime"'
        b' VALUE="1210"/></CNHEADER><CNBODY><CNACTION><FIELD NAME="strAction" VALUE="OUT FOR'
        b' DELIVERY"/><FIELD NAME="strActionDate"'
        b' VALUE="10072026"/></CNACTION></CNBODY></CONSIGNMENT></DTDCREPLY>',
        [
            ("A1", None, "out_for_delivery", "2026-07-10T00:00:00+05:30"),
            ("A1", None, "delivered", "2026-07-10T12:10:00+05:30"),
        ],
    ),
    Small(
        "dpd",
        "InfoServices of Poland print the parcel in each event",
        b"<getEventsForWaybillV1Response><return><eventsList><businessCode>170309</businessCode>"
        b"<eventTime>2026-03-05T08:31:00.000+01:00</eventTime><waybill>0U</waybill></eventsList>"
        b"</return>"
        b"</getEventsForWaybillV1Response>",
        [("0U", "170309", "out_for_delivery", "2026-03-05T08:31:00+01:00")],
    ),
    Small(
        "jtexpress",
        "a number that begins with JTE is Saudi Arabia's, whose platform prints no code and no"
        " zone",
        b'[{"billCode": "JTE1", "details": [{"scanType": "Pickup scan", "scanTime": "2026-06-06'
        b' 10:10:28", "desc": "-"}]}]',
        [("JTE1", None, "picked_up", "2026-06-06T10:10:28+03:00")],
    ),
    Small(
        "sf_express",
        "a code says what happened only with its reason",
        b'{"Body": {"WaybillRoute": [{"mailno": "SF1", "opCode": "8000", "reasonCode": "6",'
        b' "acceptTime": "2026-03-03 10:00:00", "id": "1"}, {"mailno": "SF1", "opCode": "8000",'
        b' "acceptTime": "2026-03-03 11:00:00", "id": "2"}]}}',
        [
            ("SF1", "8000/6", "lost", "2026-03-03T10:00:00+08:00"),
            ("SF1", "8000", "info", "2026-03-03T11:00:00+08:00"),
        ],
    ),
    Small(
        "ontrac",
        "the UTC time beside the local one is the zone, and a piece has the number",
        b'{"Pieces": [{"TrackingNumber": "LX1"}], "Events": [{"DateTime": "2026-11-12T10:45:34", '
        b'"UTCDateTime": "2026-11-12T15:45:34", "EventType": "Arrived"}]}',
        [("LX1", "Arrived", "in_transit", "2026-11-12T10:45:34-05:00")],
    ),
    Small(
        "shiprocket",
        "where Shiprocket has no id the courier's own code counts",
        b'{"awb": "7D1", "courier_name": "DTDC Surface", "scans": [{"date": "2026-05-19 11:59:16",'
        b' "status": "SPL", "activity": "Softdata Upload", "sr-status": "NA"}]}',
        [("7D1", "SPL", "info_received", "2026-05-19T11:59:16+05:30")],
    ),
    Small(
        "17track",
        "an event without a stage is read by its text, and one whose text is not known is no"
        " unknown code",
        b'{"event": "TRACKING_UPDATED", "data": {"number": "1", "track_info": {"tracking":'
        b' {"providers": [{"events": [{"time_iso": "2026-03-04T10:00:00Z", "description": "Label'
        b' created", "stage": null}, {"time_iso": "2026-03-04T11:00:00Z", "description": "Origin'
        b' scan", "stage": null}]}]}}}}',
        [
            ("1", None, "info_received", "2026-03-04T10:00:00+00:00"),
            ("1", None, "info", "2026-03-04T11:00:00+00:00"),
        ],
    ),
    Small(
        "amazon",
        "the rollup counts only without events",
        b'{"trackingId": "T1", "eventHistory": null, "summary": {"status": "OutForDelivery"}}',
        [("T1", "OutForDelivery", "out_for_delivery", RECEIVED)],
    ),
    Small(
        "dhl_unified",
        "a subscription that waits for its activation waits for a human",
        b'{"scope": "subscription.validate", "secret": "s", "self":'
        b' "https://api-eu.dhl.com/tracking/push/v1/subscription/1"}',
        [],
        ["/scope"],
    ),
    Small(
        "clickpost",
        "a return order without a waybill moves nothing on the forward one",
        b'{"waybill": "", "clickpost_status_code": "101", "additional": {"forward_awb": "F1"}}',
        [("F1", "101", "info", RECEIVED)],
    ),
    Small(
        "clickpost",
        "an unknown code is unmapped and none is rejected",
        b'[{"waybill": "A", "clickpost_status_code": 777}, {"waybill": "B"}, 7]',
        [("A", "777", "unmapped", RECEIVED)],
        ["/2", "/1"],
    ),
    Small(
        "delhivery",
        "a status that no scan repeats is a scan of its own",
        b'{"Shipment": {"AWB": "A", "Status": {"Status": "Delivered"}, "Scans": [{"ScanDetail":'
        b' {"Scan": "Out for delivery"}}]}}',
        [
            ("A", "Delivered", "delivered", RECEIVED),
            ("A", "Out for delivery", "out_for_delivery", RECEIVED),
        ],
    ),
    Small(
        "dtdc",
        "a push prints the code as the action",
        b'{"shipment": {"strShipmentNo": "B2"}, "shipmentStatus": {"strAction": "OUTDLV",'
        b' "strActionDesc": "Out", "strActionDate": "05022026", "strActionTime": "0900"}}',
        [("B2", "OUTDLV", "out_for_delivery", "2026-02-05T09:00:00+05:30")],
    ),
    Small(
        "easyship",
        "a change of status prints no time",
        b'{"event_type": "shipment.tracking.status.changed", "data": {"status": "failed_attempt",'
        b' "tracking_number": 12}}',
        [("12", "failed_attempt", "delivery_attempted", RECEIVED)],
    ),
    Small(
        "epcis",
        "a single event needs no document, and a step is one code as a word and as a CURIE",
        b'{"type": "ObjectEvent", "eventTime": "2026-02-03T10:00:00Z", "epcList": ["a"], "bizStep":'
        b' "cbv:BizStep-accepting"}',
        [("a", "accepting", "picked_up", "2026-02-03T10:00:00+00:00")],
    ),
    Small(
        "parcelone",
        "the rollup counts only without scans",
        b'{"success": 1, "results": {"CarrierTrackingID": "LM1", "StatusCode": "DELIVERED",'
        b' "DeliveryDate": "2026-03-04"}}',
        [("LM1", "DELIVERED", "delivered", "2026-03-04T00:00:00+01:00")],
    ),
    Small(
        "sendcloud",
        "false means no number, and an unknown status is unmapped",
        b'{"action": "x", "timestamp": "1772524800", "parcel": {"tracking_number": false, "status":'
        b' {"id": "77"}}}',
        [(None, "77", "unmapped", "2026-03-03T08:00:00+00:00")],
    ),
    Small(
        "sendcloud",
        "a timestamp that is no number is rejected",
        b'{"timestamp": "soon", "parcel": {"status": {"id": 1}}}',
        [],
        ["/parcel/status"],
    ),
    Small(
        "sf_express",
        "a push may be JSON",
        b'{"Body": {"WaybillRoute": {"id": 7, "mailno": "44", "acceptTime": "2026-03-02 14:36:36",'
        b' "opCode": "31"}}}',
        [("44", "31", "in_transit", "2026-03-02T14:36:36+08:00")],
    ),
    Small(
        "shipengine",
        "the last event without a code takes the shipment's where it ends the shipment",
        SHIPENGINE_BODY % b"DE",
        [("1", "01", "delivered", "2026-03-04T20:00:00+00:00")],
    ),
    Small(
        "shipengine",
        "an event without a code leaves the shipment's alone where more events follow",
        SHIPENGINE_BODY % b"IT",
        [("1", None, "in_transit", "2026-03-04T20:00:00+00:00")],
    ),
    Small(
        "shippo",
        "the rollup counts only without scans",
        b'{"tracking_number": "9", "tracking_history": [], "tracking_status": {"object_id": "b",'
        b' "status": "TRANSIT"}}',
        [("9", "TRANSIT", "in_transit", RECEIVED)],
    ),
    Small(
        "usps",
        "one event may replace the list, and a repeated one is one scan",
        b'[{"trackingNumber": "94", "trackSummary": %b, "trackingEvents": [%b]}, null]'
        % (USPS_EVENT, USPS_EVENT),
        [("94", "OF", "out_for_delivery", "2026-03-07T09:10:00-05:00")],
        ["/1"],
    ),
    Small(
        "usps",
        "the rollup counts only without scans",
        b'{"trackingNumber": "94", "status": "Out for Delivery", "statusCategory": "Out for'
        b' Delivery"}',
        [("94", "Out for Delivery", "out_for_delivery", RECEIVED)],
    ),
)
