"""Parcels (parcelsapp.com): webhooks and answers of its API, version 3.

It aggregates many carriers.

A state has the words of its carrier and no code: the newest, which is printed first, takes the
status of the shipment, another is read where its words are known. Times are instants.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

CODES: Final = kit.meanings("parcelsapp_codes.csv")
TEXTS: Final = kit.meanings("shipengine_texts.csv")
# (code, text): texts that USPS prints without a code.
USPS: Final = kit.meanings("usps_codes.csv")
_by_text: Final = kit.by_sentence(
    {words: meaning for (code, words), meaning in USPS.items() if not code}
    | {words: meaning for (words,), meaning in TEXTS.items()}
)

CLOCK: Final = kit.Clock(formats=kit.ISO)

_STATES: Final = "states"
_NUMBER: Final = "trackingId"


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, shipment in _shipments(kit.read_json(body), rejections):
        found = kit.readings_of(
            _scans(shipment, where, received_at, rejections),
            kit.text(shipment.get(_NUMBER)),
            rejections,
        )
        yield from kit.carried_by(
            found, kit.text(kit.child(shipment, "detectedCarrier").get("slug"))
        )


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and "shipment" in body:
        found = [("/shipment", kit.object_at(body, "shipment", "", rejections))]
    elif type(body) is dict and "shipments" in body:
        shipments = kit.objects_at(body, "shipments", "", rejections)
        found = [(f"/shipments/{index}", shipment) for index, shipment in shipments]
    elif type(body) is dict and {"uuid", "error"} & body.keys():
        return
    else:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but neither a webhook nor an answer of Parcels"
        )
    yield from kit.recognised(found, {_STATES}, rejections)


def _scans(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    newest = kit.text(shipment.get("status"))
    for index, state in kit.objects_at(shipment, _STATES, where, rejections):
        words = kit.text(state.get("state"))
        raw = kit.Raw(code=newest if index == 0 else None)
        at = kit.reported_place(kit.text(state.get("location")))
        yield kit.Scan(
            where=f"{where}/{_STATES}/{index}",
            raw=raw,
            meaning=_reread(raw) or _by_text(words or "") or kit.UNMAPPED,
            time=CLOCK.read(kit.text(state.get("date")), at, received_at=received_at),
            place=at,
            description=words,
        )


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    return CODES.get((raw.code or "",))


CARRIER: Final = kit.Carrier(
    carrier_id="parcelsapp",
    name="Parcels",
    number_fields=(_NUMBER,),
    normalizers={"1": normalize},
    formats=("API v3 webhook JSON", "API v3 tracking JSON"),
    reread=_reread,
    texts=kit.texts_of(TEXTS, USPS),
    authentication=(kit.ShipperChoice(),),
)
