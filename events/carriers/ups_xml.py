"""UPS in XML: the legacy `TrackResponse` and SOAP's, with a status's type and code elsewhere."""

from collections.abc import Iterator
from datetime import datetime

from lxml import etree

from events.carriers import kit
from events.carriers.ups_activity import Activity, iso_date, journey_of, read_activity
from events.carriers.ups_quantum_view import ROOT, as_json, read_quantum_view


def read_xml_message(
    document: kit.Document, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Read a UPS message in XML. Raises UnreadableMessageError (`unknown_format`) for an unknown
    format. A SOAP fault holds no events.
    """
    response = kit.body_of(document)
    if response is None or response.tag == "Fault":
        return
    if response.tag == ROOT:
        yield from read_quantum_view(as_json(response) or {}, received_at, rejections)
        return
    if response.tag != "TrackResponse":
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "no track response of UPS")
    for at, shipment in kit.elements(response, "Shipment"):
        inquired = kit.text_at(
            shipment, "InquiryNumber/Value", "ShipmentIdentificationNumber", "InquiryNumber"
        )
        for index, package in kit.elements_at(
            shipment, "Package", f"/TrackResponse/Shipment/{at}", rejections, start=0
        ):
            where = f"/TrackResponse/Shipment/{at}/Package/{index}"
            ends = (
                _place(shipment.find("Shipper/Address")),
                _place(shipment.find("ShipTo/Address")),
            )
            service = kit.text_at(shipment, "Service/Description", "Service/Code")
            found = _activities(
                package, where, inquired, received_at, rejections, ends=ends, service=service
            )
            yield from kit.with_estimate(found, _estimate(shipment, package))


def _activities(
    package: etree._Element,
    pointer: str,
    inquired: str | None,
    received_at: datetime,
    rejections: kit.Rejections,
    *,
    ends: tuple[kit.EventPlace, kit.EventPlace],
    service: str | None,
) -> list[kit.Reading]:
    number = kit.text_at(package, "TrackingNumber") or inquired
    readings: list[kit.Reading] = []
    elements_found = kit.elements_at(package, "Activity", pointer, rejections, start=0)
    found = [(index, _activity(element, number, service)) for index, element in elements_found]
    journey = journey_of((activity for _, activity in found), *ends)
    for index, activity in found:
        read = read_activity(activity, received_at, journey)
        if isinstance(read, str):
            rejections.add(pointer=f"{pointer}/Activity/{index}", why=read)
        else:
            readings.append(read)
    return readings


def _estimate(shipment: etree._Element, package: etree._Element) -> str | None:
    printed = kit.text_at(
        package, "RescheduledDeliveryDate", "ScheduledDeliveryDate"
    ) or kit.text_at(shipment, "ScheduledDeliveryDate")
    return iso_date(printed)


def _activity(activity: etree._Element, number: str | None, service: str | None) -> Activity:
    return Activity(
        number=number,
        type=kit.text_at(activity, "Status/StatusType/Code", "Status/Type"),
        code=kit.text_at(activity, "Status/StatusCode/Code", "Status/Code"),
        text=kit.text_at(activity, "Status/StatusType/Description", "Status/Description"),
        place=_place(activity.find("ActivityLocation/Address")),
        date=kit.text_at(activity, "Date"),
        time=kit.text_at(activity, "Time"),
        gmt_date=kit.text_at(activity, "GMTDate"),
        gmt_time=kit.text_at(activity, "GMTTime"),
        gmt_offset=kit.text_at(activity, "GMTOffset"),
        signer=kit.text_at(activity, "ActivityLocation/SignedForByName"),
        service=service,
    )


def _place(address: etree._Element | None) -> kit.EventPlace:
    if address is None:
        return kit.place()
    return kit.place(
        city=address.findtext("City"),
        region=address.findtext("StateProvinceCode"),
        postal_code=address.findtext("PostalCode"),
        country=address.findtext("CountryCode"),
    )
