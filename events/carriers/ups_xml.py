"""UPS in XML: the legacy `TrackResponse` and the SOAP one, which prints type and code of a status elsewhere."""

from collections.abc import Iterator
from datetime import datetime

from lxml import etree

from events.carriers.ups_activity import Activity, iso_date, journey_of, read_activity
from events.carriers.ups_quantum_view import ROOT, as_json, read_quantum_view
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Reading
from events.parsing.enrichment import with_estimate
from events.parsing.lists import elements_at
from events.parsing.places import place
from events.parsing.rejections import Rejections
from events.parsing.xml import Document, body_of, elements, text_at


def read_xml_message(
    document: Document, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    """Read a UPS message in XML. Raises UnreadableMessageError (`unknown_format`) for an unknown format. A SOAP fault holds no events."""
    response = body_of(document)
    if response is None or response.tag == "Fault":
        return
    if response.tag == ROOT:
        yield from read_quantum_view(as_json(response) or {}, received_at, rejections)
        return
    if response.tag != "TrackResponse":
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "no track response of UPS")
    for at, shipment in elements(response, "Shipment"):
        inquired = text_at(
            shipment, "InquiryNumber/Value", "ShipmentIdentificationNumber", "InquiryNumber"
        )
        for index, package in elements_at(
            shipment, "Package", f"/TrackResponse/Shipment/{at}", rejections, start=0
        ):
            where = f"/TrackResponse/Shipment/{at}/Package/{index}"
            ends = (
                _place(shipment.find("Shipper/Address")),
                _place(shipment.find("ShipTo/Address")),
            )
            service = text_at(shipment, "Service/Description", "Service/Code")
            found = _activities(
                package, where, inquired, received_at, rejections, ends=ends, service=service
            )
            yield from with_estimate(found, _estimate(shipment, package))


def _activities(
    package: etree._Element,
    pointer: str,
    inquired: str | None,
    received_at: datetime,
    rejections: Rejections,
    *,
    ends: tuple[EventPlace, EventPlace],
    service: str | None,
) -> list[Reading]:
    number = text_at(package, "TrackingNumber") or inquired
    readings: list[Reading] = []
    elements_found = elements_at(package, "Activity", pointer, rejections, start=0)
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
    printed = text_at(package, "RescheduledDeliveryDate", "ScheduledDeliveryDate") or text_at(
        shipment, "ScheduledDeliveryDate"
    )
    return iso_date(printed)


def _activity(activity: etree._Element, number: str | None, service: str | None) -> Activity:
    return Activity(
        number=number,
        type=text_at(activity, "Status/StatusType/Code", "Status/Type"),
        code=text_at(activity, "Status/StatusCode/Code", "Status/Code"),
        text=text_at(activity, "Status/StatusType/Description", "Status/Description"),
        place=_place(activity.find("ActivityLocation/Address")),
        date=text_at(activity, "Date"),
        time=text_at(activity, "Time"),
        gmt_date=text_at(activity, "GMTDate"),
        gmt_time=text_at(activity, "GMTTime"),
        gmt_offset=text_at(activity, "GMTOffset"),
        signer=text_at(activity, "ActivityLocation/SignedForByName"),
        service=service,
    )


def _place(address: etree._Element | None) -> EventPlace:
    if address is None:
        return place()
    return place(
        city=address.findtext("City"),
        region=address.findtext("StateProvinceCode"),
        postal_code=address.findtext("PostalCode"),
        country=address.findtext("CountryCode"),
    )
