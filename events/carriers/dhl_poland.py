"""DHL24 Poland: getTrackAndTraceInfo (SOAP).

Times are Polish; `receivedBy` of the shipment signed its delivery.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

CODES: Final = kit.meanings("dhl_poland_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%Y-%m-%d[ %H:%M[:%S]]", "%Y-%m-%dT%H:%M:%S[%f][%z]"),
    default_zone="Europe/Warsaw",
)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for result in _results(kit.read_xml(body)):
        number = kit.text_at(result, "shipmentId")
        found: list[kit.Reading] = []
        for index, item in kit.elements_at(result, "events/item", "", rejections):
            fields = kit.texts(item)
            code = fields.get("status")
            raw = kit.Raw(code=code)
            found += kit.reading_of(
                kit.Scan(
                    where=f"events/item[{index}]",
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(fields.get("timestamp"), received_at=received_at),
                    place=kit.place(city=fields.get("terminal")),
                    description=fields.get("description"),
                ),
                number,
                rejections,
            )
        yield from kit.with_signer(found, kit.signer(kit.text_at(result, "receivedBy")))


def _results(document: kit.Document) -> Iterator[_Element]:
    for answer in kit.answers(document):
        if answer.tag not in ("getTrackAndTraceInfoResponse", "Fault"):
            raise kit.UnreadableMessageError(
                kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DHL24 Poland"
            )
        yield from answer.iterfind("getTrackAndTraceInfoResult")


CARRIER: Final = kit.Carrier(
    carrier_id="dhl_poland",
    name="DHL Parcel Poland",
    number_fields=("shipmentId",),
    normalizers={"1": normalize},
    formats=("DHL24 getTrackAndTraceInfo SOAP",),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
