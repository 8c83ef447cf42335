"""FedEx in JSON: the Track API, and the push of Advanced Integrated Visibility, which
sends the same results.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit
from events.carriers.fedex_scan import FedexScan, read_scan

_RESULT_KEYS: Final = frozenset({"trackingNumberInfo", "scanEvents", "latestStatusDetail"})
_ERROR_KEYS: Final = frozenset({"errors", "error", "alerts"})
_ESTIMATE: Final = "ESTIMATED_DELIVERY"
_OTHER_DATES: Final = frozenset({"dateAndTimes"})


def read_json_message(
    value: object, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Read a FedEx message in JSON. Raises UnreadableMessageError (`unknown_format`) for JSON that
    is none of FedEx's formats.
    """
    for pointer, result in _results(value, "", rejections):
        yield from _read_result(result, pointer, rejections, received_at)


def _results(
    value: object, pointer: str, rejections: kit.Rejections
) -> list[tuple[str, kit.JsonObject]]:
    """Return the results for single shipments, wherever in the envelopes that FedEx uses they
    lie.
    """
    if type(value) is list:
        return [
            found
            for at, member in kit.objects(value, pointer, rejections)
            for found in _results(member, f"{pointer}/{at}", rejections)
        ]
    if type(value) is not dict:
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "no track result of FedEx")
    for envelope in ("output", "completeTrackResults", "trackResults"):
        if envelope in value:
            inside = value[envelope]
            return _results(
                kit.as_list(inside) if envelope != "output" else inside or {},
                f"{pointer}/{envelope}",
                rejections,
            )
    if _RESULT_KEYS & value.keys():
        return [(pointer, value)]
    # after the results: one of several numbers may have an `error` of its own
    if not value or _ERROR_KEYS & value.keys():
        return []
    raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "no track result of FedEx")


def _read_result(
    result: kit.JsonObject, pointer: str, rejections: kit.Rejections, received_at: datetime
) -> list[kit.Reading]:
    info = kit.child(result, "trackingNumberInfo")
    number, unique_id = (
        kit.text(info.get("trackingNumber")),
        kit.text(info.get("trackingNumberUniqueId")),
    )
    service = _service(result)
    readings: list[kit.Reading] = []
    for index, event in kit.objects_at(
        result, "scanEvents", pointer, rejections, required=False, but=_OTHER_DATES
    ):
        read = read_scan(_scan(event, number, unique_id, service), received_at)
        if isinstance(read, str):
            rejections.add(pointer=f"{pointer}/scanEvents/{index}", why=read)
        else:
            readings.append(read)
    # the rollup repeats the newest scan: read beside scans it would be a second event
    if not result.get("scanEvents") and "error" not in result:
        read = read_scan(
            _rollup(kit.child(result, "latestStatusDetail"), number, unique_id, service),
            received_at,
        )
        readings += [] if isinstance(read, str) else [read]
    delivery = kit.child(result, "deliveryDetails")
    signed = kit.with_signer(
        readings,
        kit.signer(delivery.get("receivedByName")) or kit.signer(delivery.get("signedByName")),
    )
    return kit.with_estimate(signed, kit.estimate(_printed_estimate(result), kit.ISO))


def _scan(
    event: kit.JsonObject, number: str | None, unique_id: str | None, service: str | None
) -> FedexScan:
    return FedexScan(
        number=number,
        unique_id=unique_id,
        service=service,
        code=kit.text(event.get("eventType")),
        exception=kit.text(event.get("exceptionCode")),
        text=kit.text(event.get("eventDescription")),
        exception_text=kit.text(event.get("exceptionDescription")),
        time=kit.text(event.get("date")),
        place=_place(event),
    )


def _rollup(
    status: kit.JsonObject, number: str | None, unique_id: str | None, service: str | None
) -> FedexScan:
    """Return the current status, which counts only where there are no scans at all."""
    code = kit.text(status.get("code"))
    return FedexScan(
        number=number,
        unique_id=unique_id,
        service=service,
        code=code,
        exception=None,
        text=kit.text(status.get("description")) if code else None,
        exception_text=None,
        # the rollup prints no time of its own
        time=None,
        place=_place(status),
    )


def _place(event: kit.JsonObject) -> kit.EventPlace:
    address = kit.child(event, "scanLocation")
    return kit.place(
        city=address.get("city"),
        region=address.get("stateOrProvinceCode"),
        postal_code=address.get("postalCode"),
        country=address.get("countryCode"),
        facility=event.get("locationId"),
    )


def _service(result: kit.JsonObject) -> str | None:
    printed = kit.child(result, "serviceDetail")
    # the type before the description, which FedEx translates
    return kit.text(printed.get("type")) or kit.text(printed.get("description"))


def _printed_estimate(result: kit.JsonObject) -> str | None:
    for printed in kit.as_list(result.get("dateAndTimes")):
        if type(printed) is dict and printed.get("type") == _ESTIMATE:
            return kit.text(printed.get("dateTime"))
    # the end of the window: an estimate is the time by which the parcel is there
    return kit.text(kit.child(result, "estimatedDeliveryTimeWindow", "window").get("ends"))
