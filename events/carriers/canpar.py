"""Canpar: answers of its add-on service (SOAP).

`delivered` and `estimated_delivery_date` of a result are rollups; its events are facts.

Times are local to the address of the event; `time_shift` is not the offset and is left aside. The
French texts arrive mis-encoded, the English ones are taken.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("canpar_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y%m%d[ %H%M%S]", "%Y%m%d %H%M"),
    default_zone="America/Toronto",
    country="CA",
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for _, result, events in (
        _of_xml(kit.read_xml(body), rejections)
        if kit.is_xml(body)
        else _of_json(kit.read_json(body), rejections)
    ):
        scans = (_scan(event, address, at, received_at) for at, event, address in events)
        found = kit.with_signer(
            kit.readings_of(
                scans,
                kit.text(result.get("barcode")),
                rejections,
                service=kit.text(result.get("service_description_en")),
            ),
            kit.signer(result.get("signed_by")),
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(result.get("estimated_delivery_date")), CLOCK.formats)
        )


_Event = tuple[str, Mapping[str, object], Mapping[str, object]]


def _of_xml(
    document: kit.Document, rejections: kit.Rejections
) -> Iterator[tuple[str, Mapping[str, object], list[_Event]]]:
    for answer in kit.answers(document):
        if answer.tag != "Fault" and not answer.tag.startswith("track"):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Canpar"
            )
        for number, result in enumerate(answer.iterfind("return/result"), start=1):
            where = f"return/result[{number}]"
            events: list[_Event] = []
            for index, event in kit.elements_at(result, "events", where, rejections):
                address = event.find("address")
                fields = {} if address is None else kit.texts(address)
                events.append((f"{where}/events[{index}]", kit.texts(event), fields))
            yield where, kit.texts(result), events


def _of_json(
    body: object, rejections: kit.Rejections
) -> Iterator[tuple[str, Mapping[str, object], list[_Event]]]:
    """Yield the results of the same service as JSON, which pads its codes with a blank."""
    if type(body) is not dict or "result" not in body:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of Canpar"
        )
    for number, result in kit.objects_at(body, "result", "", rejections):
        where = f"/result/{number}"
        yield (
            where,
            result,
            [
                (f"{where}/events/{index}", event, kit.child(event, "address"))
                for index, event in kit.objects_at(result, "events", where, rejections)
            ],
        )


def _scan(
    event: Mapping[str, object], address: Mapping[str, object], where: str, received_at: datetime
) -> kit.Scan:
    at = kit.place(
        city=address.get("city"),
        region=address.get("province"),
        postal_code=address.get("postal_code"),
        country=address.get("country"),
    )
    raw = kit.Raw(code=kit.text(event.get("code")))
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        # without `time_shift` beside it, which is not the offset
        time=CLOCK.read(kit.text(event.get("local_date_time")), at, received_at=received_at),
        place=at,
        # the English text: the French one arrives mis-encoded
        description=kit.text(event.get("code_description_en")) or kit.text(event.get("comment")),
    )


CARRIER: Final = kit.Carrier(
    carrier_id="canpar",
    name="Canpar",
    number_fields=("barcode",),
    normalizers={"1": normalize},
    formats=("CanparAddons SOAP", "CanparAddons JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
