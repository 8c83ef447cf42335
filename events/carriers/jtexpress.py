"""J&T Express: pushes of its Open Platform (JSON in the form field `bizContent`), and answers to its trace query.

A scan's time is local to its branch, sometimes with a zone next to it. Each country has a platform of its own: most use the same codes for
the common way of a parcel, Vietnam publishes others next to them, and 110 is a problem here and an arrival there. So the name of the scan
goes before its code where it is one of the names that the platforms document. The platform of Vietnam prints no zone.
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
from events.parsing.lists import JsonObject, objects, objects_at, recognised
from events.parsing.meanings import UNMAPPED, Meaning, meanings, texts_of
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock

CODES: Final = meanings("jtexpress_codes.csv")
NAMES: Final = meanings("jtexpress_names.csv")
"""The names of scans in lower case."""

AMBIGUOUS: Final = "110"

CLOCK: Final = Clock(formats=TimeFormats("%Y-%m-%d %H:%M:%S"))
VIETNAM: Final = Clock(formats=CLOCK.formats, default_zone="Asia/Ho_Chi_Minh", country="VN")
_OF_VIETNAM: Final = "scanByCode"
"""Member that only the platform of Vietnam prints of a scan."""

FIELD: Final = "bizContent"

_NUMBER: Final = "billCode"


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, parcel in _parcels(
        read_json(form_fields(body).get(FIELD.encode(), body)), rejections
    ):
        yield from readings_of(
            _scans(parcel, where, received_at, rejections), text(parcel.get(_NUMBER)), rejections
        )


def _parcels(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    where = ""
    if type(body) is dict and "code" in body and "msg" in body:
        where, body = "/data", [parcel for _, parcel in objects_at(body, "data", "", rejections)]
    if body in ({}, []):
        return
    found = [] if type(body) not in (list, dict) else objects(body, where, rejections)
    known = recognised(
        ((f"{where}/{index}", parcel) for index, parcel in found), {_NUMBER}, rejections
    )
    if not known and where == "":
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor a trace of J&T Express"
        )
    yield from known


def _scans(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Scan]:
    for index, scan in objects_at(parcel, "details", where, rejections):
        names = tuple(
            name
            for name in (text(scan.get("scanTypeName")), text(scan.get("scanType")))
            if name and _named(name)
        )
        raw = Raw(
            code=text(scan.get("scanTypeCode")),
            reason=text(scan.get("problemType")),
            further=names[:1],
        )
        at, clock = _place(scan), VIETNAM if _OF_VIETNAM in scan else CLOCK
        meaning = _meaning(raw)
        if not names and raw.code == AMBIGUOUS and clock is VIETNAM:
            meaning = NAMES[("arrival",)]
        yield Scan(
            where=f"{where}/details/{index}",
            raw=raw,
            meaning=meaning,
            time=clock.read_with_offset(
                text(scan.get("scanTime")), text(scan.get("timeZone")), at, received_at=received_at
            ),
            place=at,
            description=text(scan.get("desc")) or text(scan.get("scanTypeName")),
        )


def _meaning(raw: Raw) -> Meaning:
    return next((known for name in raw.further if (known := _named(name))), None) or CODES.get(
        (raw.code or "",), UNMAPPED
    )


def _reread(raw: Raw) -> Meaning | None:
    """Read the codes that mean one thing; 110 is a problem or an arrival by platform, where no name is printed."""
    return None if raw.code == AMBIGUOUS and not raw.further else _meaning(raw)


def _named(name: str) -> Meaning | None:
    return NAMES.get((name.casefold(),))


def _place(scan: JsonObject) -> EventPlace:
    """Read the place; `Countray` is J&T's spelling."""
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
    reread=_reread,
    texts=texts_of(NAMES),
    authentication=(FormFieldMd5(header="digest", field=FIELD),),
    ack=Ack(body=b'{"code":"1","msg":"success","data":"SUCCESS"}'),
)
