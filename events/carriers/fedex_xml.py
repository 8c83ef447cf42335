"""FedEx in XML: the track replies of its web services, any version, with or without SOAP envelope."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml import etree

from events.carriers.fedex_scan import FedexScan, read_scan
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import ISO
from events.parsing.lists import elements_at
from events.parsing.places import place
from events.parsing.rejections import Rejections
from events.parsing.text import signer
from events.parsing.xml import Document, body_of, elements, text_at

_ESTIMATE: Final = "ESTIMATED_DELIVERY"
_OTHER_DATES: Final = frozenset({"DatesOrTimes", "StatusDetail"})


def read_xml_message(
    document: Document, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    """Read a FedEx message in XML. Raises UnreadableMessageError (`unknown_format`) for an unknown format. A SOAP fault holds no events."""
    reply = body_of(document)
    if reply is None or reply.tag == "Fault":
        return
    if reply.tag != "TrackReply":
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "no track reply of FedEx")
    for path in ("CompletedTrackDetails/TrackDetails", "TrackDetails"):
        for index, details in elements(reply, path):
            yield from _read_details(
                details, f"/TrackReply/{path}/{index}", rejections, received_at
            )


def _read_details(
    details: etree._Element, pointer: str, rejections: Rejections, received_at: datetime
) -> list[Reading]:
    number, unique_id = (
        text_at(details, "TrackingNumber"),
        text_at(details, "TrackingNumberUniqueIdentifier"),
    )
    service = text_at(details, "Service/Type", "ServiceType", "Service/Description", "ServiceInfo")
    readings: list[Reading] = []
    for index, event in elements_at(
        details, "Events", pointer, rejections, start=0, but=_OTHER_DATES
    ):
        read = read_scan(_scan(event, number, unique_id, service), received_at)
        if isinstance(read, str):
            rejections.add(pointer=f"{pointer}/Events/{index}", why=read)
        else:
            readings.append(read)
    status = details.find("StatusDetail")
    if status is not None and details.find("Events") is None and text_at(status, "Code"):
        read = read_scan(_rollup(status, number, unique_id, service), received_at)
        readings += [] if isinstance(read, str) else [read]
    signed = with_signer(readings, signer(text_at(details, "DeliverySignatureName")))
    return with_estimate(signed, estimate(_printed_estimate(details), ISO))


def _scan(
    event: etree._Element, number: str | None, unique_id: str | None, service: str | None
) -> FedexScan:
    return FedexScan(
        number=number,
        unique_id=unique_id,
        service=service,
        code=text_at(event, "EventType"),
        exception=text_at(event, "StatusExceptionCode"),
        text=text_at(event, "EventDescription"),
        exception_text=text_at(event, "StatusExceptionDescription"),
        time=text_at(event, "Timestamp"),
        place=_place(event.find("Address"), facility=event.findtext("StationId")),
    )


def _rollup(
    status: etree._Element, number: str | None, unique_id: str | None, service: str | None
) -> FedexScan:
    """Return the current status, which counts only where there are no scans at all."""
    return FedexScan(
        number=number,
        unique_id=unique_id,
        service=service,
        code=text_at(status, "Code"),
        exception=None,
        text=text_at(status, "Description"),
        exception_text=None,
        time=text_at(status, "CreationTime"),
        place=_place(status.find("Location")),
    )


def _place(address: etree._Element | None, facility: str | None = None) -> EventPlace:
    if address is None:
        return place(facility=facility)
    return place(
        city=address.findtext("City"),
        region=address.findtext("StateOrProvinceCode"),
        postal_code=address.findtext("PostalCode"),
        country=address.findtext("CountryCode"),
        facility=facility,
    )


def _printed_estimate(details: etree._Element) -> str | None:
    for printed in details.iterfind("DatesOrTimes"):
        if text_at(printed, "Type") == _ESTIMATE:
            return text_at(printed, "DateOrTimestamp")
    return text_at(details, "EstimatedDeliveryTimestamp")
