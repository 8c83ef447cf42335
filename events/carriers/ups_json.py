"""UPS in JSON: the Track API (`trackResponse`, and the older `TrackResponse` with capitals) and the Track Alert webhook."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.ups_activity import PLACEHOLDERS, Activity, iso_date, journey_of, read_activity
from events.carriers.ups_quantum_view import ROOT, read_quantum_view
from events.errors import Cause, UnreadableMessageError
from events.event import NOWHERE, EventPlace, Reading
from events.parsing.enrichment import with_estimate, with_signer
from events.parsing.lists import JsonObject, as_list, child, objects, objects_at
from events.parsing.places import place
from events.parsing.rejections import Rejections
from events.parsing.text import signer, text, text_unless

_ALERT_KEYS: Final = frozenset({"activityStatus", "localActivityDate", "activityLocation"})
_ERROR_KEYS: Final = frozenset({"response", "errors", "Fault", "fault", "Error"})
_ESTIMATES: Final = ("RDD", "SDD")
"""Types of delivery dates that lie ahead, the better one first: rescheduled, scheduled."""


def read_json_message(
    value: object, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    """Read a UPS message in JSON. Raises UnreadableMessageError (`unknown_format`) for JSON that is none of UPS's formats."""
    if type(value) is list:
        return _read_alerts(value, "", received_at, rejections)
    if type(value) is dict:
        if not value:
            return iter(())
        if _ALERT_KEYS & value.keys():
            return _read_alerts([value], "", received_at, rejections)
        for root in ("trackResponse", "TrackResponse"):
            if root in value:
                return _read_track_response(child(value, root), f"/{root}", received_at, rejections)
        if ROOT in value:
            return read_quantum_view(child(value, ROOT), received_at, rejections)
        if _ERROR_KEYS & value.keys():
            return iter(())
    raise UnreadableMessageError(
        Cause.UNKNOWN_FORMAT, "neither a track response nor a track alert of UPS"
    )


def _read_alerts(
    alerts: list[object], pointer: str, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    for index, alert in objects(alerts, pointer, rejections):
        if not _ALERT_KEYS & alert.keys():
            raise UnreadableMessageError(
                Cause.UNKNOWN_FORMAT, "a list of something else than track alerts of UPS"
            )
        yield from _activity_reading(
            read_activity(_alert(alert), received_at), f"{pointer}/{index}", rejections
        )


def _alert(alert: JsonObject) -> Activity:
    status = child(alert, "activityStatus")
    further = text(status.get("descriptionCode"))
    return Activity(
        number=text(alert.get("trackingNumber")),
        type=text(status.get("type")),
        code=text(status.get("code")),
        text=text(status.get("description")),
        further=() if further is None else (further,),
        place=_place(child(alert, "activityLocation")),
        date=text(alert.get("localActivityDate")),
        time=text(alert.get("localActivityTime")),
        gmt_date=text(alert.get("gmtActivityDate")),
        gmt_time=text(alert.get("gmtActivityTime")),
        gmt_offset=text(alert.get("gmtOffset")),
        signer=alert.get("receivedBy"),
        estimate=None
        if alert.get("actualDeliveryDate")
        else iso_date(text(alert.get("scheduledDeliveryDate"))),
    )


def _read_track_response(
    response: JsonObject, pointer: str, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    shipments_key = "shipment" if "shipment" in response else "Shipment"
    for at, shipment in objects_at(response, shipments_key, pointer, rejections):
        packages_key = "package" if "package" in shipment else "Package"
        inquired = _number(shipment.get("inquiryNumber", shipment.get("InquiryNumber")))
        where = f"{pointer}/{shipments_key}/{at}"
        for index, package in objects_at(shipment, packages_key, where, rejections):
            service = _service(package) or _service(shipment)
            yield from _read_package(
                package,
                inquired,
                f"{where}/{packages_key}/{index}",
                rejections,
                received_at=received_at,
                service=service,
            )


def _read_package(
    package: JsonObject,
    inquired: str | None,
    pointer: str,
    rejections: Rejections,
    *,
    received_at: datetime,
    service: str | None,
) -> list[Reading]:
    number = _number(package.get("trackingNumber", package.get("TrackingNumber"))) or inquired
    key = "activity" if "activity" in package else "Activity"
    readings: list[Reading] = []
    found = [
        (
            index,
            _activity(activity, number, service)
            if key == "activity"
            else _capital_activity(activity, number, service),
        )
        for index, activity in objects_at(package, key, pointer, rejections)
    ]
    journey = journey_of((activity for _, activity in found), *_ends(package))
    for index, activity in found:
        readings += _activity_reading(
            read_activity(activity, received_at, journey), f"{pointer}/{key}/{index}", rejections
        )
    signed = with_signer(readings, signer(child(package, "deliveryInformation").get("receivedBy")))
    return with_estimate(signed, _estimate(package.get("deliveryDate")))


def _ends(package: JsonObject) -> tuple[EventPlace, EventPlace]:
    """Return where a package comes from and where it goes to."""
    addresses = [
        address for address in as_list(package.get("packageAddress")) if type(address) is dict
    ]
    by_type = {
        text(address.get("type")): _place(child(address, "address")) for address in addresses
    }
    return by_type.get("ORIGIN", NOWHERE), by_type.get("DESTINATION", NOWHERE)


def _activity(activity: JsonObject, number: str | None, service: str | None) -> Activity:
    status = child(activity, "status")
    location = child(activity, "location")
    further = text_unless(status.get("statusCode"), PLACEHOLDERS)
    return Activity(
        number=number,
        type=text(status.get("type")),
        code=text(status.get("code")),
        text=text(status.get("description")),
        further=() if further is None else (further,),
        place=_place(child(location, "address"), facility=location.get("slic")),
        date=text(activity.get("date")),
        time=text(activity.get("time")),
        gmt_date=text(activity.get("gmtDate")),
        gmt_time=text(activity.get("gmtTime")),
        gmt_offset=text(activity.get("gmtOffset")),
        service=service,
    )


def _capital_activity(activity: JsonObject, number: str | None, service: str | None) -> Activity:
    status = child(activity, "Status")
    location = child(activity, "ActivityLocation")
    address = child(location, "Address")
    return Activity(
        number=number,
        type=text(status.get("Type")) or text(child(status, "StatusType").get("Code")),
        code=text(status.get("Code")) or text(child(status, "StatusCode").get("Code")),
        text=text(status.get("Description"))
        or text(child(status, "StatusType").get("Description")),
        place=place(
            city=address.get("City"),
            region=address.get("StateProvinceCode"),
            postal_code=address.get("PostalCode"),
            country=address.get("CountryCode"),
        ),
        date=text(activity.get("Date")),
        time=text(activity.get("Time")),
        gmt_date=text(activity.get("GMTDate")),
        gmt_time=text(activity.get("GMTTime")),
        gmt_offset=text(activity.get("GMTOffset")),
        signer=location.get("SignedForByName"),
        service=service,
    )


def _place(address: JsonObject, facility: object = None) -> EventPlace:
    if not address and facility is None:
        return NOWHERE
    return place(
        city=address.get("city"),
        region=address.get("stateProvince"),
        postal_code=address.get("postalCode"),
        country=address.get("countryCode") or address.get("country"),
        facility=facility,
    )


def _service(of: JsonObject) -> str | None:
    printed = child(of, "service") or child(of, "Service")
    names = (
        text_unless(printed.get(name), PLACEHOLDERS)
        for name in ("description", "Description", "code", "Code")
    )
    return next((name for name in names if name), None)


def _number(value: object) -> str | None:
    """Return a number, printed bare or (`InquiryNumber`) as the value of an object."""
    return text_unless(value.get("Value") if type(value) is dict else value, PLACEHOLDERS)


def _estimate(dates: object) -> str | None:
    by_type = {
        text(date.get("type")): text(date.get("date"))
        for date in as_list(dates)
        if type(date) is dict
    }
    return next(
        (iso_date(by_type[kind]) for kind in _ESTIMATES if iso_date(by_type.get(kind)) is not None),
        None,
    )


def _activity_reading(
    read: Reading | str, pointer: str, rejections: Rejections
) -> tuple[Reading, ...]:
    if isinstance(read, str):
        rejections.add(pointer=pointer, why=read)
        return ()
    return (read,)
