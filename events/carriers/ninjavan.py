"""Ninja Van: webhooks of both versions, and the events of the tracking API.

A status is a text. The second version adds `event`, the status with its particulars (`Delivered, Left at Doorstep`), or prints those as the
`state` of an `..._information`. A parcel on its way back is said so by a flag of its own, and then every scan is of the return.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, Hmac
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, child, objects_at
from events.parsing.meanings import Meaning, finest, meanings, texts_of
from events.parsing.places import place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.text import text
from events.parsing.times import Clock
from events.spelling import spelled
from events.vocabulary import Kind, Status

_TABLE: Final = meanings("ninjavan_codes.csv")
CODES: Final = {spelled(key[0]): meaning for key, meaning in _TABLE.items()}
"""Statuses and events, in one spelling."""

CLOCK: Final = Clock(formats=ISO, default_zone="Asia/Singapore")

RETURN: Final = "is_parcel_on_rts_leg"
_ON_THE_WAY_BACK: Final = frozenset(
    {
        Status.PICKED_UP,
        Status.IN_TRANSIT,
        Status.AVAILABLE_FOR_PICKUP,
        Status.OUT_FOR_DELIVERY,
        Status.DELIVERY_ATTEMPTED,
    }
)
_HUB: Final = re.compile(r"(?P<country>[A-Z]{2})-(?P<city>[^-]+)-(?P<hub>.+)")
"""The comment of a first version's webhook: `SG-Singapore-Ninja Van Sorting Facility`."""
_INFORMATION: Final = "_information"
_NUMBERS: Final = ("tracking_id", "tracking_number")
_ERROR_FIELDS: Final = frozenset({"error", "errors", "message", "code"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    for where, number, event in _events(read_json(body), rejections):
        yield from readings_of(
            (_scan(event, where, received_at),), number or _number(event), rejections
        )


def _events(body: object, rejections: Rejections) -> Iterator[tuple[str, str | None, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and "data" in body:
        for index, parcel in objects_at(body, "data", "", rejections):
            yield from _history(parcel, f"/data/{index}", rejections)
    elif type(body) is dict and "events" in body:
        yield from _history(body, "", rejections)
    elif type(body) is dict and "status" in body and body.keys() & _NUMBERS:
        yield "", None, body
    elif type(body) is not dict or not _ERROR_FIELDS & body.keys():
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but nothing of Ninja Van")


def _history(
    parcel: JsonObject, where: str, rejections: Rejections
) -> Iterator[tuple[str, str | None, JsonObject]]:
    number = _number(parcel)
    yield from (
        (f"{where}/events/{index}", number, event)
        for index, event in objects_at(parcel, "events", where, rejections)
    )


def _number(of: JsonObject) -> str | None:
    return next((number for name in _NUMBERS if (number := text(of.get(name)))), None)


def _scan(event: JsonObject, where: str, received_at: datetime) -> Scan:
    information = [
        (name, member)
        for name, member in event.items()
        if type(member) is dict and name.endswith((_INFORMATION, "_exception"))
    ]
    state = next((state for _, member in information if (state := text(member.get("state")))), None)
    said = text(event.get("event"))
    raw = Raw(
        type=text(event.get("status")),
        code=said,
        reason=state if said is None else None,
        further=(RETURN,) if event.get(RETURN) is True else (),
    )
    why = next(
        (why for _, member in information if (why := text(member.get("failure_reason")))), None
    ) or text(event.get("rts_reason"))
    where_at = _place(event, [member for _, member in information])
    return Scan(
        where=where,
        raw=raw,
        meaning=_meaning(raw),
        time=CLOCK.read(text(event.get("timestamp")), where_at, received_at=received_at),
        place=where_at,
        description=" - ".join(part for part in (raw.code or raw.type, why) if part) or None,
        signed_by=child(event, "delivery_information", "proof", "signed_by").get("name"),
    )


def _meaning(raw: Raw) -> Meaning:
    """Read the event, or the status with its state, or the status alone as a category."""
    stated = f"{raw.type}, {raw.reason}" if raw.type and raw.reason else None
    found = finest(
        *(
            (part, CODES.get(spelled(part)) if part else None)
            for part in (raw.code, stated, raw.type)
        )
    )
    if RETURN not in raw.further or found.kind is not Kind.SCAN:
        return found
    if found.status is Status.DELIVERED:
        return found._replace(status=Status.RETURNED)
    return found._replace(status=Status.RETURNING) if found.status in _ON_THE_WAY_BACK else found


def _place(event: JsonObject, information: list[JsonObject]) -> EventPlace:
    hub = next((member for member in information if "hub" in member), None)
    if hub is not None:
        return place(city=hub.get("city"), country=hub.get("country"), facility=hub.get("hub"))
    comment = _HUB.fullmatch(text(event.get("comments")) or "")
    return (
        place(city=comment["city"], country=comment["country"], facility=comment["hub"])
        if comment
        else place()
    )


CARRIER: Final = Carrier(
    carrier_id="ninjavan",
    name="Ninja Van",
    number_fields=("|".join(_NUMBERS),),
    normalizers={"1": normalize},
    formats=("Webhook v1 JSON", "Webhook v2 JSON", "Tracking events JSON"),
    reread=_meaning,
    texts=texts_of(_TABLE) | {state for (key,) in _TABLE if (state := key.partition(", ")[2])},
    authentication=(Hmac(header="X-Ninjavan-Hmac-Sha256", encoding="base64"),),
)
