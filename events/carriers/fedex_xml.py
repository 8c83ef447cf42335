"""FedEx in XML: the track replies of its web services, any version, with or without SOAP
envelope.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml import etree

from events.carriers import kit
from events.carriers.fedex_scan import FedexScan, read_scan

_ESTIMATE: Final = "ESTIMATED_DELIVERY"
_OTHER_DATES: Final = frozenset({"DatesOrTimes", "StatusDetail"})


def read_xml_message(
    document: kit.Document, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Read a FedEx message in XML. Raises UnreadableMessageError (`unknown_format`) for an unknown
    format. A SOAP fault holds no events.
    """
    reply = kit.body_of(document)
    if reply is None or reply.tag == "Fault":
        return
    if reply.tag != "TrackReply":
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "no track reply of FedEx")
    # versions of the service wrap the details, or do not
    for path in ("CompletedTrackDetails/TrackDetails", "TrackDetails"):
        for index, details in kit.elements(reply, path):
            yield from _read_details(
                details, f"/TrackReply/{path}/{index}", rejections, received_at
            )


def _read_details(
    details: etree._Element, pointer: str, rejections: kit.Rejections, received_at: datetime
) -> list[kit.Reading]:
    number, unique_id = (
        kit.text_at(details, "TrackingNumber"),
        kit.text_at(details, "TrackingNumberUniqueIdentifier"),
    )
    service = kit.text_at(
        details, "Service/Type", "ServiceType", "Service/Description", "ServiceInfo"
    )
    readings: list[kit.Reading] = []
    for index, event in kit.elements_at(
        details, "Events", pointer, rejections, start=0, but=_OTHER_DATES
    ):
        read = read_scan(_scan(event, number, unique_id, service), received_at)
        if isinstance(read, str):
            rejections.add(pointer=f"{pointer}/Events/{index}", why=read)
        else:
            readings.append(read)
    status = details.find("StatusDetail")
    # the rollup repeats the newest scan: read beside scans it would be a second event
    if status is not None and details.find("Events") is None and kit.text_at(status, "Code"):
        read = read_scan(_rollup(status, number, unique_id, service), received_at)
        readings += [] if isinstance(read, str) else [read]
    signed = kit.with_signer(readings, kit.signer(kit.text_at(details, "DeliverySignatureName")))
    return kit.with_estimate(signed, kit.estimate(_printed_estimate(details), kit.ISO))


def _scan(
    event: etree._Element, number: str | None, unique_id: str | None, service: str | None
) -> FedexScan:
    return FedexScan(
        number=number,
        unique_id=unique_id,
        service=service,
        code=kit.text_at(event, "EventType"),
        exception=kit.text_at(event, "StatusExceptionCode"),
        text=kit.text_at(event, "EventDescription"),
        exception_text=kit.text_at(event, "StatusExceptionDescription"),
        time=kit.text_at(event, "Timestamp"),
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
        code=kit.text_at(status, "Code"),
        exception=None,
        text=kit.text_at(status, "Description"),
        exception_text=None,
        time=kit.text_at(status, "CreationTime"),
        place=_place(status.find("Location")),
    )


def _place(address: etree._Element | None, facility: str | None = None) -> kit.EventPlace:
    if address is None:
        return kit.place(facility=facility)
    return kit.place(
        city=address.findtext("City"),
        region=address.findtext("StateOrProvinceCode"),
        postal_code=address.findtext("PostalCode"),
        country=address.findtext("CountryCode"),
        facility=facility,
    )


def _printed_estimate(details: etree._Element) -> str | None:
    for printed in details.iterfind("DatesOrTimes"):
        if kit.text_at(printed, "Type") == _ESTIMATE:
            return kit.text_at(printed, "DateOrTimestamp")
    return kit.text_at(details, "EstimatedDeliveryTimestamp")
