"""Canpar: answers of its add-on service (SOAP). `delivered` and `estimated_delivery_date` of a result are rollups; its events are facts.

Times are local to the address of the event; `time_shift` is not the offset and is left aside. The French texts arrive mis-encoded, the
English ones are taken.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

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
    """Yield the events of one answer."""
    for where, result in _results(kit.read_xml(body)):
        fields = kit.texts(result)
        found = kit.with_signer(
            list(_events(result, fields, where, received_at, rejections)),
            kit.signer(fields.get("signed_by")),
        )
        yield from kit.with_estimate(
            found, kit.estimate(fields.get("estimated_delivery_date"), CLOCK.formats)
        )


def _results(document: kit.Document) -> Iterator[tuple[str, _Element]]:
    for answer in kit.answers(document):
        if answer.tag != "Fault" and not answer.tag.startswith("track"):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Canpar"
            )
        yield from (
            (f"return/result[{index}]", result)
            for index, result in enumerate(answer.iterfind("return/result"), start=1)
        )


def _events(
    result: _Element,
    shipment: dict[str, str],
    where: str,
    received_at: datetime,
    rejections: kit.Rejections,
) -> Iterator[kit.Reading]:
    for index, event in kit.elements_at(result, "events", where, rejections):
        fields = kit.texts(event)
        code = fields.get("code")
        at = _place(event.find("address"))
        raw = kit.Raw(code=code)
        yield from kit.reading_of(
            kit.Scan(
                where=f"{where}/events[{index}]",
                raw=raw,
                meaning=_meaning(raw),
                time=CLOCK.read(fields.get("local_date_time"), at, received_at=received_at),
                place=at,
                description=fields.get("code_description_en") or fields.get("comment"),
            ),
            shipment.get("barcode"),
            rejections,
            service=shipment.get("service_description_en"),
        )


def _place(address: _Element | None) -> kit.EventPlace:
    fields = {} if address is None else kit.texts(address)
    return kit.place(
        city=fields.get("city"),
        region=fields.get("province"),
        postal_code=fields.get("postal_code"),
        country=fields.get("country"),
    )


CARRIER: Final = kit.Carrier(
    carrier_id="canpar",
    name="Canpar",
    number_fields=("barcode",),
    normalizers={"1": normalize},
    formats=("CanparAddons SOAP",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
