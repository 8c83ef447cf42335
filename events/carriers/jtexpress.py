"""J&T Express: pushes of its Open Platform (JSON in the form field `bizContent`), and answers to its trace query.

A scan's time is local to its branch, sometimes with a zone next to it. The codes are those of the platform of Malaysia; branches in other
countries use the same ones for the common way of a parcel.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Ack, Carrier, FormFieldMd5
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.formats import TimeFormats
from events.parsing.forms import form_fields
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, objects
from events.parsing.meanings import by_code, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("jtexpress_codes.csv")
_meaning: Final = by_code(CODES)

CLOCK: Final = Clock(formats=TimeFormats("%Y-%m-%d %H:%M:%S"))

FIELD: Final = "bizContent"

_NUMBER: Final = "billCode"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Events of one push or answer."""
    for where, parcel in _parcels(read_json(form_fields(body).get(FIELD.encode(), body)), rejections):
        yield from readings_of(_scans(parcel, where, received_at, rejections), text(parcel.get(_NUMBER)), rejections)


def _parcels(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    where = ""
    if type(body) is dict and "code" in body and "msg" in body:
        where, body = "/data", body.get("data") or []
    if body in ({}, []):
        return
    found = [] if type(body) not in (list, dict) else objects(body, where, rejections)
    known = [(f"{where}/{index}", parcel) for index, parcel in found if _NUMBER in parcel]
    if not known and where == "":
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor a trace of J&T Express")
    yield from known


def _scans(parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections) -> Iterator[Scan]:
    for index, scan in objects(parcel.get("details"), f"{where}/details", rejections):
        raw, at = Raw(code=text(scan.get("scanTypeCode")), reason=text(scan.get("problemType"))), _place(scan)
        yield Scan(
            where=f"{where}/details/{index}",
            raw=raw,
            meaning=_meaning(raw),
            time=CLOCK.read_with_offset(text(scan.get("scanTime")), text(scan.get("timeZone")), at, received_at=received_at),
            place=at,
            description=text(scan.get("desc")) or text(scan.get("scanTypeName")),
        )


def _place(scan: JsonObject) -> EventPlace:
    """`Countray` is J&T's spelling."""
    return place(
        city=scan.get("scanNetworkCity") or scan.get("scanNetworkArea"),
        region=scan.get("scanNetworkProvince"),
        postal_code=scan.get("postCode"),
        country=scan.get("scanNetworkCountray") or scan.get("scanNetworkCountry"),
        facility=scan.get("scanNetworkName"),
    )


CARRIER: Final = Carrier(
    carrier_id="jtexpress",
    name="J&T Express",
    number_fields=(_NUMBER,),
    normalizers={"1": normalize},
    formats=("Trace push JSON in a form", "Trace answer JSON"),
    reread=_meaning,
    authentication=(FormFieldMd5(header="digest", field=FIELD),),
    ack=Ack(body=b'{"code":"1","msg":"success","data":"SUCCESS"}'),
)
