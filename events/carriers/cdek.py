"""CDEK (Russia): webhooks of statuses and of delivery problems, and answers of `GET /v2/orders`.

The answers list both. A return order brings the parcel back to the shop: its delivery is a return.
A status has a word; older webhooks print its number alone. A problem has numbers of its own, so it
is a scan of the type `DELIV_PROBLEM`. Statuses that CDEK deleted are ignored, and so are webhooks
about other subjects (a printed form, a receipt, an agreement). Times have an offset, and not always
the same offset.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (type, code, reason). The type is empty for a status; the reason is set where it refines the code.
CODES: Final = kit.meanings("cdek_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO)

STATUS: Final = "ORDER_STATUS"
PROBLEM: Final = "DELIV_PROBLEM"
OTHERS: Final = frozenset(
    {
        "ACCOMPANYING_WAYBILL",
        "COURIER_INFO",
        "DELIV_AGREEMENT",
        "DOWNLOAD_PHOTO",
        "OFFICE_AVAILABILITY",
        "ORDER_MODIFIED",
        "PREALERT_CLOSED",
        "PRINT_FORM",
        "RECEIPT",
    }
)

BACK: Final = "is_return=true"

# `office of CDEK`, printed where the city is unknown
_NO_CITY: Final = "Офис СДЭК"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    yield from _read(kit.read_json(body), "", received_at, rejections)


def _read(
    body: object, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    if type(body) is list:
        for index, member in kit.objects(body, where, rejections):
            yield from _read(member, f"{where}/{index}", received_at, rejections)
        return
    # an answer has no type
    kind = kit.text(body.get("type")) if type(body) is dict else None
    if type(body) is dict and kind in {STATUS, PROBLEM}:
        told = kit.object_at(body, "attributes", where, rejections)
        if told:
            scan = _scan(
                told,
                f"{where}/attributes",
                kind,
                kit.text(body.get("date_time")),
                received_at,
                is_back=_is_back(told),
            )
            yield from kit.readings_of((scan,), kit.text(told.get("cdek_number")), rejections)
    elif kind in OTHERS:
        rejections.note_nothing()
    elif type(body) is dict and {"entity", "requests"} & body.keys():
        order = kit.object_at(
            body, "entity", where, rejections, required=False, but={"requests", "related_entities"}
        )
        if order:
            yield from _ordered(order, f"{where}/entity", received_at, rejections)
    else:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a webhook nor an order of CDEK"
        )


def _ordered(
    order: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    scans = []
    for name, kind in (("statuses", STATUS), ("delivery_problem", PROBLEM)):
        is_status = kind == STATUS
        for index, each in kit.objects_at(
            order, name, where, rejections, required=is_status, but={"statuses"}
        ):
            # CDEK takes a status back by this mark
            if each.get("deleted") is True:
                rejections.note_nothing()
            else:
                scans.append(
                    _scan(
                        each,
                        f"{where}/{name}/{index}",
                        kind,
                        None,
                        received_at,
                        is_back=_is_back(order),
                    )
                )
    found = kit.readings_of(scans, kit.text(order.get("cdek_number")), rejections)
    signed = kit.with_signer(
        found, kit.signer(kit.text(kit.child(order, "delivery_detail").get("recipient_name")))
    )
    yield from kit.with_estimate(
        signed, kit.estimate(kit.text(order.get("planned_delivery_date")), kit.ISO)
    )


def _is_back(of: kit.JsonObject) -> bool:
    return of.get("is_return") is True


def _scan(
    of: kit.JsonObject,
    where: str,
    kind: str | None,
    sent: str | None,
    received_at: datetime,
    *,
    is_back: bool,
) -> kit.Scan:
    code = kit.text(of.get("code")) or kit.text(of.get("status_code"))
    raw = kit.Raw(
        # problems have numbers of their own, which statuses have too
        type=kind if kind == PROBLEM else None,
        code=code,
        reason=kit.text(of.get("status_reason_code")) or kit.text(of.get("reason_code")),
        further=(BACK,) if is_back else (),
    )
    city = kit.text(of.get("city_name")) or kit.text(of.get("city"))
    # the status' own time before that of the webhook, which may be sent much later
    printed = next(
        (
            at
            for name in ("status_date_time", "date_time", "create_date")
            if (at := kit.text(of.get(name)))
        ),
        sent,
    )
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(printed, received_at=received_at),
        place=kit.place(city=None if city == _NO_CITY else city),
        description=kit.text(of.get("name")),
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    key = (raw.type or "", raw.code or "")
    meaning = CODES.get((*key, raw.reason or "")) or CODES.get((*key, ""), kit.UNMAPPED)
    return kit.on_the_way_back(meaning) if BACK in raw.further else meaning


CARRIER: Final = kit.Carrier(
    carrier_id="cdek",
    name="CDEK",
    number_fields=("cdek_number",),
    normalizers={"1": normalize},
    formats=("Webhooks of statuses and problems", "Orders API JSON"),
    reread=_meaning,
    authentication=(kit.ShipperChoice(),),
)
