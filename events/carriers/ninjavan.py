"""Ninja Van: webhooks of both versions, and the events of the tracking API.

A status is a text. The second version adds `event`, the status with its particulars (`Delivered,
Left at Doorstep`), or prints those as the `state` of an `..._information`. A flag marks a parcel on
its way back, and then every scan is of the return.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

_TABLE: Final = kit.meanings("ninjavan_codes.csv")
# Statuses and events, in normalised spelling.
CODES: Final = {kit.spelled(key[0]): meaning for key, meaning in _TABLE.items()}

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Asia/Singapore")

# the whole leg is marked: a scan alone does not say which way the parcel goes
RETURN: Final = "is_parcel_on_rts_leg"
_ON_THE_WAY_BACK: Final = frozenset(
    {
        kit.Status.PICKED_UP,
        kit.Status.IN_TRANSIT,
        kit.Status.AVAILABLE_FOR_PICKUP,
        kit.Status.OUT_FOR_DELIVERY,
        kit.Status.DELIVERY_ATTEMPTED,
    }
)
# The comment of a first version's webhook: `SG-Singapore-Ninja Van Sorting Facility`.
_HUB: Final = re.compile(r"(?P<country>[A-Z]{2})-(?P<city>[^-]+)-(?P<hub>.+)")
_INFORMATION: Final = "_information"
_NUMBERS: Final = ("tracking_id", "tracking_number")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "code"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, number, event in _events(kit.read_json(body), rejections):
        yield from kit.readings_of(
            (_scan(event, where, received_at),), number or _number(event), rejections
        )


def _events(
    body: object, rejections: kit.Rejections
) -> Iterator[tuple[str, str | None, kit.JsonObject]]:
    if type(body) is dict and "data" in body:
        for index, parcel in kit.objects_at(body, "data", "", rejections):
            yield from _history(parcel, f"/data/{index}", rejections)
    elif type(body) is dict and "events" in body:
        yield from _history(body, "", rejections)
    elif type(body) is dict and "status" in body and body.keys() & _NUMBERS:
        yield "", None, body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise kit.UnreadableMessageError(kit.Cause.UNKNOWN_FORMAT, "JSON, but nothing of Ninja Van")


def _history(
    parcel: kit.JsonObject, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, str | None, kit.JsonObject]]:
    number = _number(parcel)
    yield from (
        (f"{where}/events/{index}", number, event)
        for index, event in kit.objects_at(parcel, "events", where, rejections)
    )


def _number(of: kit.JsonObject) -> str | None:
    return next((number for name in _NUMBERS if (number := kit.text(of.get(name)))), None)


def _scan(event: kit.JsonObject, where: str, received_at: datetime) -> kit.Scan:
    information = [
        (name, member)
        for name, member in event.items()
        if type(member) is dict and name.endswith((_INFORMATION, "_exception"))
    ]
    state = next(
        (state for _, member in information if (state := kit.text(member.get("state")))), None
    )
    said = kit.text(event.get("event"))
    raw = kit.Raw(
        type=kit.text(event.get("status")),
        code=said,
        # `event` names the same particulars
        reason=state if said is None else None,
        further=(RETURN,) if event.get(RETURN) is True else (),
    )
    why = next(
        (why for _, member in information if (why := kit.text(member.get("failure_reason")))), None
    ) or kit.text(event.get("rts_reason"))
    where_at = _place(event, [member for _, member in information])
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(kit.text(event.get("timestamp")), where_at, received_at=received_at),
        place=where_at,
        description=" - ".join(part for part in (raw.code or raw.type, why) if part) or None,
        signed_by=kit.child(event, "delivery_information", "proof", "signed_by").get("name"),
    )


def _meaning(raw: kit.Raw) -> kit.Meaning:
    """Read the event, or the status with its state, or the status alone as a category."""
    stated = f"{raw.type}, {raw.reason}" if raw.type and raw.reason else None
    found = kit.finest(
        *(
            # versions differ in case and hyphens of the same words
            (part, CODES.get(kit.spelled(part)) if part else None)
            for part in (raw.code, stated, raw.type)
        )
    )
    if RETURN not in raw.further or found.kind is not kit.Kind.SCAN:
        return found
    if found.status is kit.Status.DELIVERED:
        return found._replace(status=kit.Status.RETURNED)
    return (
        found._replace(status=kit.Status.RETURNING) if found.status in _ON_THE_WAY_BACK else found
    )


def _place(event: kit.JsonObject, information: list[kit.JsonObject]) -> kit.EventPlace:
    hub = next((member for member in information if "hub" in member), None)
    if hub is not None:
        return kit.place(city=hub.get("city"), country=hub.get("country"), facility=hub.get("hub"))
    # the first version prints the hub in the comment alone, and other comments there too
    comment = _HUB.fullmatch(kit.text(event.get("comments")) or "")
    return (
        kit.place(city=comment["city"], country=comment["country"], facility=comment["hub"])
        if comment
        else kit.place()
    )


CARRIER: Final = kit.Carrier(
    carrier_id="ninjavan",
    name="Ninja Van",
    number_fields=("|".join(_NUMBERS),),
    normalizers={"1": normalize},
    formats=("Webhook v1 JSON", "Webhook v2 JSON", "Tracking events JSON"),
    reread=_meaning,
    texts=kit.texts_of(_TABLE) | {state for (key,) in _TABLE if (state := key.partition(", ")[2])},
    authentication=(kit.Hmac(header="X-Ninjavan-Hmac-Sha256", encoding="base64"),),
)
