"""FedEx in JSON: the Track API, and the push of Advanced Integrated Visibility, which sends the same results."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.fedex_scan import FedexScan, read_scan
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import ISO
from events.parsing.lists import JsonObject, as_list, child, objects, objects_at
from events.parsing.places import place
from events.parsing.rejections import Rejections
from events.parsing.text import signer, text

_RESULT_KEYS: Final = frozenset({"trackingNumberInfo", "scanEvents", "latestStatusDetail"})
_ERROR_KEYS: Final = frozenset({"errors", "error", "alerts"})
_ESTIMATE: Final = "ESTIMATED_DELIVERY"
_OTHER_DATES: Final = frozenset({"dateAndTimes"})


def read_json_message(
    value: object, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    """Read a FedEx message in JSON. Raises UnreadableMessageError (`unknown_format`) for JSON that is none of FedEx's formats."""
    for pointer, result in _results(value, "", rejections):
        yield from _read_result(result, pointer, rejections, received_at)


def _results(value: object, pointer: str, rejections: Rejections) -> list[tuple[str, JsonObject]]:
    """Return the results for single shipments, wherever in the envelopes that FedEx uses they lie."""
    if type(value) is list:
        return [
            found
            for at, member in objects(value, pointer, rejections)
            for found in _results(member, f"{pointer}/{at}", rejections)
        ]
    if type(value) is not dict:
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "no track result of FedEx")
    for envelope in ("output", "completeTrackResults", "trackResults"):
        if envelope in value:
            inside = value[envelope]
            return _results(
                as_list(inside) if envelope != "output" else inside or {},
                f"{pointer}/{envelope}",
                rejections,
            )
    if _RESULT_KEYS & value.keys():
        return [(pointer, value)]
    if not value or _ERROR_KEYS & value.keys():
        return []
    raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "no track result of FedEx")


def _read_result(
    result: JsonObject, pointer: str, rejections: Rejections, received_at: datetime
) -> list[Reading]:
    info = child(result, "trackingNumberInfo")
    number, unique_id = text(info.get("trackingNumber")), text(info.get("trackingNumberUniqueId"))
    service = _service(result)
    readings: list[Reading] = []
    for index, event in objects_at(
        result, "scanEvents", pointer, rejections, required=False, but=_OTHER_DATES
    ):
        read = read_scan(_scan(event, number, unique_id, service), received_at)
        if isinstance(read, str):
            rejections.add(pointer=f"{pointer}/scanEvents/{index}", why=read)
        else:
            readings.append(read)
    if not result.get("scanEvents") and "error" not in result:
        read = read_scan(
            _rollup(child(result, "latestStatusDetail"), number, unique_id, service), received_at
        )
        readings += [] if isinstance(read, str) else [read]
    delivery = child(result, "deliveryDetails")
    signed = with_signer(
        readings, signer(delivery.get("receivedByName")) or signer(delivery.get("signedByName"))
    )
    return with_estimate(signed, estimate(_printed_estimate(result), ISO))


def _scan(
    event: JsonObject, number: str | None, unique_id: str | None, service: str | None
) -> FedexScan:
    return FedexScan(
        number=number,
        unique_id=unique_id,
        service=service,
        code=text(event.get("eventType")),
        exception=text(event.get("exceptionCode")),
        text=text(event.get("eventDescription")),
        exception_text=text(event.get("exceptionDescription")),
        time=text(event.get("date")),
        place=_place(event),
    )


def _rollup(
    status: JsonObject, number: str | None, unique_id: str | None, service: str | None
) -> FedexScan:
    """Return the current status, which counts only where there are no scans at all."""
    code = text(status.get("code"))
    return FedexScan(
        number=number,
        unique_id=unique_id,
        service=service,
        code=code,
        exception=None,
        text=text(status.get("description")) if code else None,
        exception_text=None,
        time=None,
        place=_place(status),
    )


def _place(event: JsonObject) -> EventPlace:
    address = child(event, "scanLocation")
    return place(
        city=address.get("city"),
        region=address.get("stateOrProvinceCode"),
        postal_code=address.get("postalCode"),
        country=address.get("countryCode"),
        facility=event.get("locationId"),
    )


def _service(result: JsonObject) -> str | None:
    printed = child(result, "serviceDetail")
    return text(printed.get("type")) or text(printed.get("description"))


def _printed_estimate(result: JsonObject) -> str | None:
    for printed in as_list(result.get("dateAndTimes")):
        if type(printed) is dict and printed.get("type") == _ESTIMATE:
            return text(printed.get("dateTime"))
    return text(child(result, "estimatedDeliveryTimeWindow", "window").get("ends"))
