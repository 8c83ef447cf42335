"""DTDC: tracking answers (`trackDetails`) and pushes (`shipmentStatus`).

Dates are DDMMYYYY, times HHMM, both Indian.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from lxml.etree import _Element

from events.carriers import kit

CODES: Final = kit.meanings("dtdc_codes.csv")
_meaning: Final = kit.by_code(CODES)
CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%d%m%Y[ %H%M[%S]]",
        "%d%m%Y %H:%M[:%S]",
        "%-d/%-m/%Y[ %H:%M[:%S]]",
        "%-d-%-m-%Y[ %H:%M[:%S]]",
    ),
    default_zone="Asia/Kolkata",
    country="IN",
)
# Words of answers that print no code.
WORDS: Final = {
    "booked": kit.Meaning(kit.Kind.SCAN, kit.Status.PICKED_UP),
    "delivered": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERED),
    "dispatched": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
    "not delivered": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERY_ATTEMPTED),
    "out for delivery": kit.Meaning(kit.Kind.SCAN, kit.Status.OUT_FOR_DELIVERY),
    "received": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
}
_LISTS: Final = ("trackDetails", "shipmentStatus")
_KNOWN_LISTS: Final = frozenset(_LISTS)
_HEADERS: Final = ("trackHeader", "shipment")


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, answer in _answers(
        _of_xml(kit.read_xml(body)) if kit.is_xml(body) else kit.read_json(body), rejections
    ):
        number = next(
            (
                found
                for name in _HEADERS
                if (found := kit.text(kit.child(answer, name).get("strShipmentNo")))
            ),
            None,
        )
        service = next(
            (
                found
                for name in _HEADERS
                if (found := kit.text(kit.child(answer, name).get("strCNProduct")))
            ),
            None,
        )
        for name in _LISTS:
            pointer = f"{where}/{name}"
            for index, event in kit.objects_at(
                answer,
                name,
                where,
                rejections,
                required=not answer.keys() & _KNOWN_LISTS,
                but=_KNOWN_LISTS,
            ):
                yield from _reading(
                    event, number, f"{pointer}/{index}", received_at, rejections, service=service
                )


def _of_xml(document: kit.Document) -> list[kit.JsonObject]:
    """Return the consignments of an answer in XML under the names of the JSON; its
    header is the newest scan.

    It prints words without a code.
    """
    found = []
    for consignment in document.root.iterfind("CONSIGNMENT"):
        header = _fields(consignment.find("CNHEADER"))
        newest = {
            "strAction": header.get("strStatus"),
            "strActionDate": header.get("strStatusTransOn"),
            "strActionTime": header.get("strStatusTransTime"),
        }
        actions = [_fields(each) for each in consignment.iterfind("CNBODY/CNACTION")]
        # without the time, which the header and the body need not print alike
        same = ("strAction", "strActionDate")
        if newest["strAction"] and not any(
            all(each.get(name) == newest[name] for name in same) for each in actions
        ):
            actions.append(newest)
        found.append({"trackHeader": header, "trackDetails": actions})
    return found


def _fields(element: _Element | None) -> kit.JsonObject:
    """Return fields printed as `<FIELD NAME= VALUE=>`, in capitals or not."""
    attributes = (
        {str(name).upper(): str(value) for name, value in field.attrib.items()}
        for field in (() if element is None else element)
    )
    return {each["NAME"]: each.get("VALUE") for each in attributes if "NAME" in each}


def _answers(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    found = (
        [("", body)]
        if type(body) is dict
        else [(f"/{at}", answer) for at, answer in kit.objects(body, "", rejections)]
    )
    if not any(
        {*_LISTS, *_HEADERS, "errorDetails", "statusFlag"} & answer.keys() for _, answer in found
    ):
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of DTDC")
    yield from found


def _reading(
    event: kit.JsonObject,
    number: str | None,
    where: str,
    received_at: datetime,
    rejections: kit.Rejections,
    *,
    service: str | None,
) -> tuple[kit.Reading, ...]:
    """Read an event; a push prints the code where an answer prints its words."""
    # only a push prints words beside its action, which is a code then
    pushed = kit.text(event.get("strActionDesc"))
    code = kit.text(event.get("strCode")) or (kit.text(event.get("strAction")) if pushed else None)
    date, time, manifest = (
        kit.text(event.get(name)) for name in ("strActionDate", "strActionTime", "strManifestNo")
    )
    raw = kit.Raw(code=code, further=(manifest,) if manifest else ())
    return kit.reading_of(
        kit.Scan(
            where=where,
            raw=raw,
            meaning=_meaning(raw)
            if code
            else WORDS.get((kit.text(event.get("strAction")) or "").casefold(), kit.UNMAPPED),
            time=CLOCK.read(f"{date} {time}" if date and time else date, received_at=received_at),
            place=kit.place(city=event.get("strOrigin")),
            description=pushed or kit.text(event.get("strAction")),
        ),
        number,
        rejections,
        service=service,
    )


CARRIER: Final = kit.Carrier(
    carrier_id="dtdc",
    name="DTDC",
    number_fields=("strShipmentNo",),
    normalizers={"1": normalize},
    formats=("Tracking JSON", "Status push JSON", "Tracking XML"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
