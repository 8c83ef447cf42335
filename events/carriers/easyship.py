"""Easyship: the webhook of a status change, which prints no time, that of checkpoints, and
answers of its tracking API.

The words of a status are its code.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# Words of a status, in lower case with blanks.
CODES: Final = kit.meanings("easyship_codes.csv")

CLOCK: Final = kit.Clock(formats=kit.ISO)
PLACEHOLDERS: Final = frozenset({"string"})
_CHECKPOINT_WORDS: Final = ("primary_status", "status", "order_status")
_COUNTRIES: Final = ("country_iso3", "country_alpha2", "country_name")
_ANSWERS: Final = ("tracking", "trackings")


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of a webhook; webhooks about labels and orders have none."""
    for where, shipment in _shipments(kit.read_json(body), rejections):
        number = kit.text(shipment.get("tracking_number"))
        for pointer, event in _events(shipment, where, rejections):
            raw = kit.Raw(
                code=next(
                    (found for name in _CHECKPOINT_WORDS if (found := kit.text(event.get(name)))),
                    None,
                )
            )
            at = kit.place(
                city=kit.text(event.get("city")) or event.get("location"),
                region=event.get("state"),
                postal_code=event.get("postal_code"),
                country=next(
                    (
                        found
                        for name in _COUNTRIES
                        if (found := kit.text_unless(event.get(name), PLACEHOLDERS))
                    ),
                    None,
                ),
            )
            yield from kit.reading_of(
                kit.Scan(
                    where=pointer,
                    raw=raw,
                    meaning=_meaning(raw),
                    time=CLOCK.read(
                        kit.text(event.get("checkpoint_time")), at, received_at=received_at
                    ),
                    place=at,
                    description=kit.text(event.get("message"))
                    or kit.text(event.get("description")),
                ),
                number,
                rejections,
            )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get(((raw.code or "").replace("_", " ").casefold(),), kit.UNMAPPED)


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if (
        type(body) is dict
        and (answer := next((name for name in _ANSWERS if name in body), None)) is not None
    ):
        yield from (
            (f"/{answer}/{index}", shipment)
            for index, shipment in kit.objects_at(body, answer, "", rejections)
        )
        return
    if type(body) is not dict or not {"event_type", "resource_type"} & body.keys():
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no webhook of Easyship"
        )
    if "tracking" not in (kit.text(body.get("event_type")) or "shipment.tracking"):
        rejections.note_nothing()
    else:
        # documented as `tracking_status`, sent as `data`
        name = "tracking_status" if "tracking_status" in body else "data"
        shipment = kit.child(body, name)
        yield from (
            ((f"/{name}", shipment),)
            if shipment
            else ((f"/{name}/{at}", one) for at, one in kit.objects_at(body, name, "", rejections))
        )


def _events(
    shipment: kit.JsonObject, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield the checkpoints; without any the status itself."""
    has_status = "tracking_status" in shipment or "status" in shipment
    checkpoints = kit.objects_at(
        shipment, "checkpoints", where, rejections, required=not has_status
    )
    yield from ((f"{where}/checkpoints/{index}", event) for index, event in checkpoints)
    if has_status and not kit.as_list(shipment.get("checkpoints")):
        yield (
            f"{where}/status",
            {"status": shipment.get("tracking_status") or shipment.get("status")},
        )


CARRIER: Final = kit.Carrier(
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
    texts=kit.texts_of(CODES),
    authentication=(kit.SignedWebToken(header="X-EASYSHIP-SIGNATURE"),),
)
