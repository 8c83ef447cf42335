"""Easyship: the webhook of a status change, which prints no time, that of checkpoints, and answers of its tracking API.

The words of a status are its code.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, SignedWebToken
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings, texts_of
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text, text_unless
from events.parsing.times import Clock

CODES: Final = meanings("easyship_codes.csv")
"""Words of a status, in lower case with blanks."""

CLOCK: Final = Clock(formats=ISO)
PLACEHOLDERS: Final = frozenset({"string"})
_CHECKPOINT_WORDS: Final = ("primary_status", "status", "order_status")
_COUNTRIES: Final = ("country_iso3", "country_alpha2", "country_name")
_ANSWERS: Final = ("tracking", "trackings")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one webhook; webhooks about labels and orders say nothing of the parcel's way."""
    for where, shipment in _shipments(read_json(body), rejections):
        number = text(shipment.get("tracking_number"))
        for pointer, event in _events(shipment, where, rejections):
            raw = Raw(
                code=next(
                    (found for name in _CHECKPOINT_WORDS if (found := text(event.get(name)))), None
                )
            )
            at = place(
                city=text(event.get("city")) or event.get("location"),
                region=event.get("state"),
                postal_code=event.get("postal_code"),
                country=next(
                    (
                        found
                        for name in _COUNTRIES
                        if (found := text_unless(event.get(name), PLACEHOLDERS))
                    ),
                    None,
                ),
            )
            yield from reading_of(
                Scan(
                    where=pointer,
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(
                        text(event.get("checkpoint_time")), at, received_at=received_at
                    ),
                    place=at,
                    description=text(event.get("message")) or text(event.get("description")),
                ),
                number,
                rejections,
            )


def _meaning(raw: Raw) -> Meaning:
    return CODES.get(((raw.code or "").replace("_", " ").casefold(),), UNMAPPED)


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if (
        type(body) is dict
        and (answer := next((name for name in _ANSWERS if name in body), None)) is not None
    ):
        yield from (
            (f"/{answer}/{index}", shipment)
            for index, shipment in objects_at(body, answer, "", rejections)
        )
        return
    if type(body) is not dict or not {"event_type", "resource_type"} & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Easyship")
    if "tracking" not in (text(body.get("event_type")) or "shipment.tracking"):
        rejections.note_nothing()
    else:
        shipment = child(body, "data")
        yield from (
            (("/data", shipment),)
            if shipment
            else ((f"/data/{at}", one) for at, one in objects_at(body, "data", "", rejections))
        )


def _events(
    shipment: JsonObject, where: str, rejections: Rejections
) -> Iterator[tuple[str, JsonObject]]:
    """Yield the checkpoints; without any the status itself."""
    has_status = "tracking_status" in shipment or "status" in shipment
    checkpoints = objects_at(shipment, "checkpoints", where, rejections, required=not has_status)
    yield from ((f"{where}/checkpoints/{index}", event) for index, event in checkpoints)
    if has_status and not as_list(shipment.get("checkpoints")):
        yield (
            f"{where}/status",
            {"status": shipment.get("tracking_status") or shipment.get("status")},
        )


CARRIER: Final = Carrier(
    carrier_id="easyship",
    name="Easyship",
    number_fields=("tracking_number",),
    normalizers={"1": normalize},
    formats=(
        "shipment.tracking.status.changed webhook",
        "shipment.tracking.checkpoints.created webhook",
        "Tracking API JSON",
    ),
    reread=_meaning,
    texts=texts_of(CODES),
    authentication=(SignedWebToken(header="X-EASYSHIP-SIGNATURE"),),
)
