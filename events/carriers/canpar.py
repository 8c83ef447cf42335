"""Canpar: answers of its add-on service (SOAP). `delivered` and `estimated_delivery_date` of a result are rollups; its events are facts.

Times are local to the address of the event; `time_shift` is not the offset and is left aside. The French texts arrive mis-encoded, the
English ones are taken.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import TimeFormats
from events.parsing.lists import elements_at
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import signer
from events.parsing.times import Clock
from events.parsing.xml import Document, answers, read_xml, texts

CODES: Final = meanings("canpar_codes.csv")
_meaning: Final = by_code(CODES)
CLOCK: Final = Clock(
    formats=TimeFormats("%Y%m%d[ %H%M%S]", "%Y%m%d %H%M"),
    default_zone="America/Toronto",
    country="CA",
)


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer."""
    for where, result in _results(read_xml(body)):
        fields = texts(result)
        found = with_signer(
            list(_events(result, fields, where, received_at, rejections)),
            signer(fields.get("signed_by")),
        )
        yield from with_estimate(
            found, estimate(fields.get("estimated_delivery_date"), CLOCK.formats)
        )


def _results(document: Document) -> Iterator[tuple[str, _Element]]:
    for answer in answers(document):
        if answer.tag != "Fault" and not answer.tag.startswith("track"):
            raise UnreadableMessageError(
                Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of Canpar"
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
    rejections: Rejections,
) -> Iterator[Reading]:
    for index, event in elements_at(result, "events", where, rejections):
        fields = texts(event)
        code = fields.get("code")
        at = _place(event.find("address"))
        raw = Raw(code=code)
        yield from reading_of(
            Scan(
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


def _place(address: _Element | None) -> EventPlace:
    fields = {} if address is None else texts(address)
    return place(
        city=fields.get("city"),
        region=fields.get("province"),
        postal_code=fields.get("postal_code"),
        country=fields.get("country"),
    )


CARRIER: Final = Carrier(
    carrier_id="canpar",
    name="Canpar",
    number_fields=("barcode",),
    normalizers={"1": normalize},
    formats=("CanparAddons SOAP",),
    reread=_meaning,
    authentication=(ShipperChoice(),),
)
