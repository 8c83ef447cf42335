"""J&T Express: pushes of its Open Platform (JSON in the form field `bizContent`), trace answers.

A scan's time is local to its branch, sometimes with a zone next to it. Each country has a platform
of its own: most use the same codes for the common way of a parcel, Vietnam publishes others next to
them, and 110 is a problem on some and an arrival on others. So a documented name of the scan goes
before its code. The platform of Vietnam prints no zone.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("jtexpress_codes.csv")
# The names of scans in lower case.
NAMES: Final = kit.meanings("jtexpress_names.csv")

# a problem on some platforms, an arrival on others
AMBIGUOUS: Final = "110"

CLOCK: Final = kit.Clock(formats=kit.TimeFormats("%Y-%m-%d %H:%M:%S"))
# its platform prints no zone, and its numbers have no prefix of the country
VIETNAM: Final = kit.Clock(formats=CLOCK.formats, default_zone="Asia/Ho_Chi_Minh", country="VN")
# Countries by the prefix of their numbers, for local times without a zone.
HOMES: Final = {
    "JEG": kit.Journey(home="Africa/Cairo"),
    "JMX": kit.Journey(home="America/Mexico_City"),
    "JTE": kit.Journey(home="Asia/Riyadh"),
    "UTE": kit.Journey(home="Asia/Riyadh"),
}
# Types of scans of platforms that print no code.
WITHOUT_CODE: Final = {
    "arrival scan": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
    "delivery scan": kit.Meaning(kit.Kind.SCAN, kit.Status.OUT_FOR_DELIVERY),
    "departure scan": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
    "pickup scan": kit.Meaning(kit.Kind.SCAN, kit.Status.PICKED_UP),
    "sign scan": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERED),
    "signing scan": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERED),
}
# Member that only the platform of Vietnam prints of a scan.
_OF_VIETNAM: Final = "scanByCode"

FIELD: Final = "bizContent"

_NUMBER: Final = "billCode"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, parcel in _parcels(
        kit.read_json(kit.form_fields(body).get(FIELD.encode(), body)), rejections
    ):
        yield from kit.readings_of(
            _scans(parcel, where, received_at, rejections),
            kit.text(parcel.get(_NUMBER)),
            rejections,
        )


def _parcels(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    where = ""
    # an answer wraps its parcels, a push is the list or a parcel itself
    if type(body) is dict and "code" in body and "msg" in body:
        where, body = (
            "/data",
            [parcel for _, parcel in kit.objects_at(body, "data", "", rejections)],
        )
    found = [] if type(body) not in (list, dict) else kit.objects(body, where, rejections)
    known = kit.recognised(
        ((f"{where}/{index}", parcel) for index, parcel in found), {_NUMBER}, rejections
    )
    if not known and where == "":
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a push nor a trace of J&T Express"
        )
    yield from known


def _scans(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    for index, scan in kit.objects_at(parcel, "details", where, rejections):
        names = tuple(
            name
            for name in (kit.text(scan.get("scanTypeName")), kit.text(scan.get("scanType")))
            # only documented names: an unknown one must not keep the code from being read
            if name and (name.casefold(),) in NAMES
        )
        code, kind = kit.text(scan.get("scanTypeCode")), kit.text(scan.get("scanType")) or ""
        if code is None and not names and kind.casefold() in WITHOUT_CODE:
            names = (kind,)
        raw = kit.Raw(code=code, reason=kit.text(scan.get("problemType")), further=names[:1])
        at, clock = _place(scan), VIETNAM if _OF_VIETNAM in scan else CLOCK
        meaning = _meaning(raw)
        # without a name the platform decides, and that of Vietnam means an arrival
        if not names and raw.code == AMBIGUOUS and clock is VIETNAM:
            meaning = NAMES[("arrival",)]
        yield kit.Scan(
            where=f"{where}/details/{index}",
            raw=raw,
            meaning=meaning,
            time=clock.read_with_offset(
                kit.text(scan.get("scanTime")),
                kit.text(scan.get("timeZone")),
                at,
                received_at=received_at,
                journey=HOMES.get(
                    (kit.text(parcel.get(_NUMBER)) or "")[:3].upper(), kit.NO_JOURNEY
                ),
            ),
            place=at,
            description=kit.text(scan.get("desc")) or kit.text(scan.get("scanTypeName")),
        )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return next((known for name in raw.further if (known := _named(name))), None) or CODES.get(
        (raw.code or "",), kit.UNMAPPED
    )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read the unambiguous codes.

    110 is a problem or an arrival by platform, where no name is printed.
    """
    return None if raw.code == AMBIGUOUS and not raw.further else _meaning(raw)


def _named(name: str) -> kit.Meaning | None:
    return NAMES.get((name.casefold(),)) or WITHOUT_CODE.get(name.casefold())


def _place(scan: kit.JsonObject) -> kit.EventPlace:
    """Read the place; `Countray` is J&T's spelling."""
    return kit.place(
        city=scan.get("scanNetworkCity") or scan.get("scanNetworkArea"),
        region=scan.get("scanNetworkProvince"),
        postal_code=scan.get("postCode"),
        country=scan.get("scanNetworkCountray") or scan.get("scanNetworkCountry"),
        facility=scan.get("scanNetworkName"),
    )


CARRIER: Final = kit.Carrier(
    carrier_id="jtexpress",
    name="J&T Express",
    number_fields=(_NUMBER,),
    normalizers={"1": normalize},
    formats=("Trace push JSON in a form", "Trace answer JSON"),
    reread=_reread,
    texts=kit.texts_of(NAMES),
    authentication=(kit.FormFieldMd5(header="digest", field=FIELD),),
    ack=kit.Ack(body=b'{"code":"1","msg":"success","data":"SUCCESS"}'),
)
