"""UPS in JSON: the Track API (`trackResponse`, and the older `TrackResponse` with capitals) and
the Track Alert webhook.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit
from events.carriers.ups_activity import PLACEHOLDERS, Activity, iso_date, journey_of, read_activity
from events.carriers.ups_quantum_view import ROOT, read_quantum_view

_ALERT_KEYS: Final = frozenset({"activityStatus", "localActivityDate", "activityLocation"})
# an error about the request holds no scan: no dead letter for each failed poll
_ERROR_KEYS: Final = frozenset({"response", "errors", "Fault", "fault", "Error"})
# Types of future delivery dates, the better first: rescheduled, scheduled.
_ESTIMATES: Final = ("RDD", "SDD")


def read_json_message(
    value: object, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Read a UPS message in JSON. Raises UnreadableMessageError (`unknown_format`) for JSON that is
    none of UPS's formats.
    """
    if type(value) is list:
        return _read_alerts(value, "", received_at, rejections)
    if type(value) is dict:
        # an empty object holds nothing that could be lost
        if not value:
            return iter(())
        # a single alert, as Track Alert sends it; several come in a list
        if _ALERT_KEYS & value.keys():
            return _read_alerts([value], "", received_at, rejections)
        # the older API spells every name with a capital, and prints codes as objects
        for root in ("trackResponse", "TrackResponse"):
            if root in value:
                return _read_track_response(
                    kit.child(value, root), f"/{root}", received_at, rejections
                )
        if ROOT in value:
            return read_quantum_view(kit.child(value, ROOT), received_at, rejections)
        if _ERROR_KEYS & value.keys():
            return iter(())
    raise kit.UnreadableMessageError(
        kit.Cause.UNKNOWN_FORMAT, "neither a track response nor a track alert of UPS"
    )


def _read_alerts(
    alerts: list[object], pointer: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for index, alert in kit.objects(alerts, pointer, rejections):
        # the whole list: a list of something else would be lost member by member
        if not _ALERT_KEYS & alert.keys():
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "a list of something else than track alerts of UPS"
            )
        yield from _activity_reading(
            read_activity(_alert(alert), received_at), f"{pointer}/{index}", rejections
        )


def _alert(alert: kit.JsonObject) -> Activity:
    status = kit.child(alert, "activityStatus")
    # the Track API's `statusCode` under the alert's name for it
    further = kit.text(status.get("descriptionCode"))
    return Activity(
        number=kit.text(alert.get("trackingNumber")),
        type=kit.text(status.get("type")),
        code=kit.text(status.get("code")),
        text=kit.text(status.get("description")),
        further=() if further is None else (further,),
        place=_place(kit.child(alert, "activityLocation")),
        date=kit.text(alert.get("localActivityDate")),
        time=kit.text(alert.get("localActivityTime")),
        gmt_date=kit.text(alert.get("gmtActivityDate")),
        gmt_time=kit.text(alert.get("gmtActivityTime")),
        gmt_offset=kit.text(alert.get("gmtOffset")),
        signer=alert.get("receivedBy"),
        # the API's `scheduledDeliveryDate` stays after the delivery, and is no estimate then
        estimate=None
        if alert.get("actualDeliveryDate")
        else iso_date(kit.text(alert.get("scheduledDeliveryDate"))),
    )


def _read_track_response(
    response: kit.JsonObject, pointer: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    shipments_key = "shipment" if "shipment" in response else "Shipment"
    for at, shipment in kit.objects_at(response, shipments_key, pointer, rejections):
        packages_key = "package" if "package" in shipment else "Package"
        inquired = _number(shipment.get("inquiryNumber", shipment.get("InquiryNumber")))
        where = f"{pointer}/{shipments_key}/{at}"
        for index, package in kit.objects_at(shipment, packages_key, where, rejections):
            # versions of the API print it at either level
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
    package: kit.JsonObject,
    inquired: str | None,
    pointer: str,
    rejections: kit.Rejections,
    *,
    received_at: datetime,
    service: str | None,
) -> list[kit.Reading]:
    # the package's own first: an inquiry by the shipment's number returns all of its packages
    number = _number(package.get("trackingNumber", package.get("TrackingNumber"))) or inquired
    key = "activity" if "activity" in package else "Activity"
    readings: list[kit.Reading] = []
    found = [
        (
            index,
            _activity(activity, number, service)
            if key == "activity"
            else _capital_activity(activity, number, service),
        )
        for index, activity in kit.objects_at(package, key, pointer, rejections)
    ]
    # from all activities: one of them may name the place that a vaguer one needs for its zone
    journey = journey_of((activity for _, activity in found), *_ends(package))
    for index, activity in found:
        readings += _activity_reading(
            read_activity(activity, received_at, journey), f"{pointer}/{key}/{index}", rejections
        )
    signed = kit.with_signer(
        readings, kit.signer(kit.child(package, "deliveryInformation").get("receivedBy"))
    )
    return kit.with_estimate(signed, _estimate(package.get("deliveryDate")))


def _ends(package: kit.JsonObject) -> tuple[kit.EventPlace, kit.EventPlace]:
    """Return where a package comes from and where it goes to."""
    addresses = [
        address for address in kit.as_list(package.get("packageAddress")) if type(address) is dict
    ]
    by_type = {
        kit.text(address.get("type")): _place(kit.child(address, "address"))
        for address in addresses
    }
    return by_type.get("ORIGIN", kit.NOWHERE), by_type.get("DESTINATION", kit.NOWHERE)


def _activity(activity: kit.JsonObject, number: str | None, service: str | None) -> Activity:
    status = kit.child(activity, "status")
    location = kit.child(activity, "location")
    # the finer code, which alerts print as `descriptionCode`: one table reads both
    further = kit.text_unless(status.get("statusCode"), PLACEHOLDERS)
    return Activity(
        number=number,
        type=kit.text(status.get("type")),
        code=kit.text(status.get("code")),
        text=kit.text(status.get("description")),
        further=() if further is None else (further,),
        # the number of UPS's centre: cities have several
        place=_place(kit.child(location, "address"), facility=location.get("slic")),
        date=kit.text(activity.get("date")),
        time=kit.text(activity.get("time")),
        gmt_date=kit.text(activity.get("gmtDate")),
        gmt_time=kit.text(activity.get("gmtTime")),
        gmt_offset=kit.text(activity.get("gmtOffset")),
        service=service,
    )


def _capital_activity(
    activity: kit.JsonObject, number: str | None, service: str | None
) -> Activity:
    status = kit.child(activity, "Status")
    location = kit.child(activity, "ActivityLocation")
    address = kit.child(location, "Address")
    return Activity(
        number=number,
        type=kit.text(status.get("Type")) or kit.text(kit.child(status, "StatusType").get("Code")),
        code=kit.text(status.get("Code")) or kit.text(kit.child(status, "StatusCode").get("Code")),
        text=kit.text(status.get("Description"))
        or kit.text(kit.child(status, "StatusType").get("Description")),
        place=kit.place(
            city=address.get("City"),
            region=address.get("StateProvinceCode"),
            postal_code=address.get("PostalCode"),
            country=address.get("CountryCode"),
        ),
        date=kit.text(activity.get("Date")),
        time=kit.text(activity.get("Time")),
        gmt_date=kit.text(activity.get("GMTDate")),
        gmt_time=kit.text(activity.get("GMTTime")),
        gmt_offset=kit.text(activity.get("GMTOffset")),
        signer=location.get("SignedForByName"),
        service=service,
    )


def _place(address: kit.JsonObject, facility: object = None) -> kit.EventPlace:
    if not address and facility is None:
        return kit.NOWHERE
    return kit.place(
        city=address.get("city"),
        region=address.get("stateProvince"),
        postal_code=address.get("postalCode"),
        country=address.get("countryCode") or address.get("country"),
        facility=facility,
    )


def _service(of: kit.JsonObject) -> str | None:
    printed = kit.child(of, "service") or kit.child(of, "Service")
    names = (
        kit.text_unless(printed.get(name), PLACEHOLDERS)
        for name in ("description", "Description", "code", "Code")
    )
    return next((name for name in names if name), None)


def _number(value: object) -> str | None:
    """Return a number, printed bare or (`InquiryNumber`) as the value of an object."""
    # UPS's samples print the name of the type as a number
    return kit.text_unless(value.get("Value") if type(value) is dict else value, PLACEHOLDERS)


def _estimate(dates: object) -> str | None:
    by_type = {
        kit.text(date.get("type")): kit.text(date.get("date"))
        for date in kit.as_list(dates)
        if type(date) is dict
    }
    # rescheduled before scheduled: both stay in the answer after a change
    return next(
        (iso_date(by_type[kind]) for kind in _ESTIMATES if iso_date(by_type.get(kind)) is not None),
        None,
    )


def _activity_reading(
    read: kit.Reading | str, pointer: str, rejections: kit.Rejections
) -> tuple[kit.Reading, ...]:
    if isinstance(read, str):
        rejections.add(pointer=pointer, why=read)
        return ()
    return (read,)
