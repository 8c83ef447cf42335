"""Shiprocket (India): its tracking webhook, and answers of its tracking API; each repeats
the history of a waybill.

A scan has Shiprocket's own status id (`NA` where it has none for it), the courier's code and the
courier's words. Without an id the words are read, which begin with the courier's state. A return
order is the buyer's parcel on its way to the seller. Times are Indian. The status of the whole
waybill is read where no scan is listed.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from events.carriers import kit

# Ids of shipment statuses.
CODES: Final = kit.meanings("shiprocket_codes.csv")

# Couriers' texts of scans without an id.
TEXTS: Final = kit.meanings("shiprocket_texts.csv")

# Codes of the courier itself, where Shiprocket has no id for a scan.
DTDC: Final = kit.meanings("dtdc_codes.csv")

_by_text = kit.by_sentence({words: meaning for (words,), meaning in TEXTS.items()})

CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats(
        "%Y-%m-%d[ %H:%M[:%S]]",
        "%Y-%m-%dT%H:%M:%S[%f][%z]",
        "%d %m %Y[ %H:%M:%S]",
        "%d-%m-%Y %H:%M:%S",
    ),
    default_zone="Asia/Kolkata",
    country="IN",
    # Indian times, whatever offset they are printed with
    trust_offset=False,
)

BACK: Final = "is_return=1"

# Shiprocket has no id of its own for that scan
_NO_ID: Final = frozenset({"NA", ""})
_TRACKING: Final = "tracking_data"


class _History(NamedTuple):
    """The scans of a waybill, and the fields about the whole of it."""

    where: str
    name: str
    of: kit.JsonObject
    number: str | None
    status: str | None
    printed: str | None


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for history in _histories(kit.read_json(body), "", rejections):
        found = kit.readings_of(
            _scans(history, received_at, rejections), history.number, rejections
        )
        yield from kit.with_estimate(
            found, kit.estimate(kit.text(history.of.get("etd")), CLOCK.formats)
        )


def _histories(body: object, where: str, rejections: kit.Rejections) -> Iterator[_History]:
    if type(body) is list:
        for index, member in kit.objects(body, where, rejections):
            yield from _histories(member, f"{where}/{index}", rejections)
    elif type(body) is dict and _TRACKING in body:
        yield from _answered(kit.child(body, _TRACKING), f"{where}/{_TRACKING}")
    elif (
        type(body) is dict
        and "awb" in body
        and {"scans", "shipment_status", "current_status"} & body.keys()
    ):
        status = kit.text(body.get("shipment_status_id"))
        yield _History(
            where,
            "scans",
            body,
            kit.text(body.get("awb")),
            status,
            kit.text(body.get("current_timestamp")),
        )
    elif type(body) is dict and any(type(of) is dict and _TRACKING in of for of in body.values()):
        for name, of in body.items():
            yield from _histories(of, f"{where}/{name}", rejections)
    elif type(body) is not dict or not {"message", "status_code", "errors"} & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking of Shiprocket"
        )


def _answered(tracked: kit.JsonObject, where: str) -> Iterator[_History]:
    """Yield the histories of an answer, which prints the state of a waybill in a list of its
    own.
    """
    track = next(
        (each for each in kit.as_list(tracked.get("shipment_track")) if type(each) is dict), {}
    )
    # an error may accompany a history that was found before
    if tracked.get("error") and not kit.as_list(tracked.get("shipment_track_activities")):
        return
    status = kit.text(tracked.get("shipment_status"))
    printed = kit.text(track.get("delivered_date")) or kit.text(track.get("updated_time_stamp"))
    yield _History(
        where,
        "shipment_track_activities",
        tracked,
        kit.text(track.get("awb_code")),
        status,
        printed,
    )


def _scans(
    history: _History, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    # webhooks print a number, answers a boolean or its text
    is_back = str(history.of.get("is_return")) in {"1", "True", "true"}
    track = kit.as_list(history.of.get("shipment_track"))[:1]
    named = (each.get("courier_name") for each in (history.of, *track) if type(each) is dict)
    is_dtdc = any((kit.text(name) or "").upper().startswith("DTDC") for name in named)
    listed = kit.objects_at(
        history.of, history.name, history.where, rejections, required=history.status is None
    )
    for index, scan in listed:
        own, courier = kit.text(scan.get("sr-status")), kit.text(scan.get("status"))
        own = None if own is None or own in _NO_ID else own
        words = kit.text(scan.get("activity")) or kit.text(scan.get("sr-status-label"))
        raw = kit.Raw(code=own or courier, further=(courier,) if own and courier else ())
        meaning = (
            CODES.get((own,))
            if own
            # the words begin with the courier's state; its code means something only with its name
            else _by_text(words or "") or (DTDC.get((courier or "",)) if is_dtdc else None)
        )
        raw, meaning = _directed(raw, meaning or kit.UNMAPPED, is_back=is_back)
        at = kit.place(city=scan.get("location"))
        yield kit.Scan(
            where=f"{history.where}/{history.name}/{index}",
            raw=raw,
            meaning=meaning,
            time=CLOCK.read(kit.text(scan.get("date")), at, received_at=received_at),
            place=at,
            description=words,
        )
    # the state of the waybill repeats the newest scan
    if not listed and history.status is not None:
        raw, meaning = _directed(
            kit.Raw(code=history.status), _meaning(kit.Raw(code=history.status)), is_back=is_back
        )
        time = CLOCK.read(history.printed, received_at=received_at)
        yield kit.Scan(
            where=history.where,
            raw=raw,
            meaning=meaning,
            time=time,
            description=kit.text(history.of.get("current_status")),
        )


def _directed(raw: kit.Raw, meaning: kit.Meaning, *, is_back: bool) -> tuple[kit.Raw, kit.Meaning]:
    # movement stays movement: a return order is the buyer's own parcel, on its only way
    if not is_back or meaning.status is not kit.Status.DELIVERED:
        return raw, meaning
    return raw._replace(further=(*raw.further, BACK)), meaning._replace(status=kit.Status.RETURNED)


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get((raw.code or "",), kit.UNMAPPED)


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code; a courier's own code is meaningless without its words."""
    known = CODES.get((raw.code or "",))
    return (
        None
        if known is None and not (raw.code or "").isdigit()
        else _directed(raw, known or kit.UNMAPPED, is_back=BACK in raw.further)[1]
    )


CARRIER: Final = kit.Carrier(
    carrier_id="shiprocket",
    name="Shiprocket",
    number_fields=("awb", "awb_code"),
    normalizers={"1": normalize},
    formats=("Tracking webhook", "Tracking API JSON"),
    reread=_reread,
    authentication=(kit.SharedHeader(header="x-api-key"), kit.ShipperChoice(default=())),
)
