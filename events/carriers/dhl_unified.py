"""DHL Shipment Tracking Unified: the push and the answer of the API have the same shape, for all of DHL's services.

A scan carries a category (`statusCode`) that DHL documents and, in `status`, a code or a text of the service; where there is neither, the
text is in `description`. A code or a text that the service documents is read as such, everything else by its category. Parcel Germany
prints the codes of its own answer as `statusDetailed`, Blue Dart one code for many texts. What is delivered of a shipment with
`returnFlag` came back to its sender. No text means a delivery that another category denies (DHL's own sample says `pre-transit` and
`DELIVERED` of one scan). The number is the shipment's `id`; a piece named by a scan distinguishes it and is no shipment of its own. The
XML of DHL eCommerce Americas (formerly Global Mail) prints the same codes as its service, and its times in the zones of the United States.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.clear_part import is_stand_in, looks_like_code
from events.errors import Cause, UnreadableMessageError
from events.event import EventPlace, Raw, Reading
from events.parsing.dhl_group import (
    BLUEDART_TEXTS,
    PARCEL_DE,
    bluedart_text,
    parcel_de_detail,
    parcel_de_text,
)
from events.parsing.enrichment import estimate, with_estimate, with_signer
from events.parsing.formats import ISO, TimeFormats
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, elements_at, objects, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, meanings, texts_of
from events.parsing.places import country_code, known_countries, place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, readings_of
from events.parsing.sentences import as_compared, by_sentence
from events.parsing.text import signer, text
from events.parsing.times import Clock
from events.parsing.whereabouts import Journey
from events.parsing.xml import Document, is_xml, read_xml, text_at, texts
from events.vocabulary import Kind, Status

CODES: Final = meanings("dhl_unified_codes.csv")
"""(service, code): the codes of `status` that a service documents and whose meaning is clear."""

TEXTS: Final = meanings("dhl_unified_texts.csv")
"""(service, text in lower case without the full stop): what services print instead of a code, where it is clear. A `*` stands for
whatever a sentence names there: a place, a day."""

BY_TEXT: Final = {
    service: by_sentence(
        {words: meaning for (of, words), meaning in TEXTS.items() if of == service}
    )
    for service in {of for of, _ in TEXTS}
} | {"bluedart": bluedart_text, PARCEL_DE: parcel_de_text}
WORDED: Final = frozenset({"bluedart"})
"""The services that print one code for many scans: the text says more."""

DOCUMENTED: Final = frozenset(code for _, code in (*CODES, *TEXTS))

CATEGORIES: Final = {
    "pre-transit": Meaning(Kind.SCAN, Status.INFO_RECEIVED),
    "transit": Meaning(Kind.SCAN, Status.IN_TRANSIT),
    "delivered": Meaning(Kind.SCAN, Status.DELIVERED),
    "failure": Meaning(Kind.SCAN, Status.EXCEPTION),
    "unknown": Meaning(Kind.INFO),
}
ZONES: Final = {
    "ecommerce-ppl": "Europe/Prague",
    "parcel-de": "Europe/Berlin",
    "parcel-nl": "Europe/Amsterdam",
    "parcel-pl": "Europe/Warsaw",
}
"""The zone in which a service that works in one country prints times without an offset, where a scan names no place."""


def _clock(service: str, *, trust_offset: bool) -> Clock:
    """Return the clock of a service; Freight prints the day of a document as its midnight."""
    return Clock(
        formats=ISO,
        default_zone=ZONES.get(service, "Europe/Berlin"),
        trust_offset=trust_offset,
        midnight_is_day="nowhere",
    )


CLOCKS: Final = {service: _clock(service, trust_offset=True) for service in ("", *ZONES)}
ROLLUP_CLOCKS: Final = {service: _clock(service, trust_offset=False) for service in CLOCKS}
"""The rollup prints the local time of its scan with a `Z`."""

AMERICAS: Final = "ecommerce"
AMERICAN_CLOCK: Final = Clock(
    formats=TimeFormats("%-m/%-d/%Y[ %-I:%M[:%S] %p]"), default_zone="America/New_York"
)
AMERICAN_ZONES: Final = {
    f"{initial}{season}T": zone
    for initial, zone in {
        "E": "America/New_York",
        "C": "America/Chicago",
        "M": "America/Denver",
        "P": "America/Los_Angeles",
        "AK": "America/Anchorage",
        "H": "Pacific/Honolulu",
    }.items()
    for season in ("", "S", "D")
}
"""The clock of the zone holds, whichever of its names is printed: some senders print the standard one all year."""

BACK: Final = "returnFlag=true"

SUBSCRIPTION: Final = "subscription."
WAITING_SUBSCRIPTIONS: Final = {
    "subscription.validate": "DHL pushes nothing until this subscription is activated with the message's `secret` (docs/operations.md)",
    "subscription.failure": "DHL says that this subscription failed; the message says why",
}
"""Notices about a subscription that wait for a human. Answering them takes the shipper's own key for DHL, which no process of ours has."""

_ERROR_FIELDS: Final = frozenset({"title", "detail", "message", "error", "errors"})
_SCAN_FIELDS: Final = frozenset({"events", "status"})


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one push or answer."""
    if is_xml(body):
        yield from _from_xml(read_xml(body), received_at, rejections)
        return
    for where, shipment in _shipments(read_json(body), rejections):
        yield from _shipment(shipment, where, received_at, rejections)


def _shipments(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    """Yield the shipments with their pointers: those of a list, of an answer, or the one that a push holds by itself."""
    if body in ({}, []):
        return
    if type(body) is list:
        found, base = objects(body, "", rejections), ""
    elif type(body) is dict and "shipments" in body:
        found, base = objects_at(body, "shipments", "", rejections), "/shipments"
    elif type(body) is dict and "id" in body and _SCAN_FIELDS & body.keys():
        yield "", body
        return
    elif type(body) is dict and (scope := text(body.get("scope")) or "").startswith(SUBSCRIPTION):
        rejections.note_nothing()
        if scope in WAITING_SUBSCRIPTIONS:
            rejections.add("/scope", WAITING_SUBSCRIPTIONS[scope])
        return
    elif type(body) is dict and _ERROR_FIELDS & body.keys():
        return
    else:
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "no `shipments` and not a shipment of DHL Unified Tracking"
        )
    for index, shipment in found:
        yield f"{base}/{index}", shipment


def _shipment(
    shipment: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> list[Reading]:
    events = shipment.get("events")
    scans = [
        (f"{where}/events/{index}", scan)
        for index, scan in objects_at(
            shipment, "events", where, rejections, required="status" not in shipment
        )
    ]
    if not as_list(events) and (rollup := child(shipment, "status")):
        scans = [(f"{where}/status", rollup)]
    number = text(shipment.get("id"))
    service = (text(shipment.get("service")) or "").casefold()
    journey = Journey(_place(child(shipment, "origin")), _place(child(shipment, "destination")))
    is_back = shipment.get("returnFlag") in (True, "true")
    scanned = (
        _scan(scan, service, pointer, received_at, journey, is_back=is_back)
        for pointer, scan in scans
    )
    readings = with_signer(
        readings_of(
            scanned,
            number,
            rejections,
            service=text(child(shipment, "details", "product").get("productName")),
        ),
        _signer(shipment),
    )
    return with_estimate(readings, estimate(text(shipment.get("estimatedTimeOfDelivery")), ISO))


def _scan(
    scan: JsonObject,
    service: str,
    pointer: str,
    received_at: datetime,
    journey: Journey,
    *,
    is_back: bool,
) -> Scan:
    raw, at = _raw(scan), _place(child(scan, "location"))
    meant = _documented(raw, service, scan.get("description")) or _by_category(raw)
    if is_back and meant.status is Status.DELIVERED:
        raw, meant = (
            raw._replace(further=(*raw.further, BACK)),
            meant._replace(status=Status.RETURNED),
        )
    printed = text(scan.get("timestamp"))
    clocks = (
        ROLLUP_CLOCKS
        if pointer.endswith("/status") and printed and printed.endswith("Z")
        else CLOCKS
    )
    return Scan(
        where=pointer,
        raw=raw,
        meaning=meant,
        time=clocks.get(service, clocks[""]).read(
            printed, at, received_at=received_at, journey=journey.at(meant.status)
        ),
        place=at,
        piece=_piece(scan),
        description=text(scan.get("description")),
    )


def _from_xml(
    document: Document, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    if document.root.tag != "track":
        raise UnreadableMessageError(
            Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DHL eCommerce Americas"
        )
    for index, shipment in enumerate(document.root.iterfind("shipment"), start=1):
        scans = (
            _xml_scan(texts(event), f"shipment[{index}]/event[{at}]", received_at)
            for at, event in elements_at(shipment, "event", f"shipment[{index}]", rejections)
        )
        found = readings_of(scans, text_at(shipment, "trackingnumber"), rejections)
        yield from with_signer(found, signer(text_at(shipment, "signedby")))


def _xml_scan(event: dict[str, str], where: str, received_at: datetime) -> Scan:
    code, description = event.get("code"), event.get("description")
    raw = Raw(code=code)
    printed = f"{event.get('date', '')} {event.get('time', '')}".strip()
    before, _, zone = printed.rpartition(" ")
    named = AMERICAN_ZONES.get(zone)
    at = place(
        city=event.get("city"),
        region=event.get("state"),
        postal_code=event.get("postalcode"),
        country=event.get("country"),
    )
    time = AMERICAN_CLOCK.read_with_offset(
        before if named else printed or None, named, at, received_at=received_at
    )
    return Scan(
        where=where,
        raw=raw,
        meaning=CODES.get((AMERICAS, code or ""), UNMAPPED),
        time=replace(time, zone=zone) if time and named else time,
        place=at,
        description=description,
    )


def _raw(scan: JsonObject) -> Raw:
    """Return category and code; where the category says all, it is the code."""
    category, code, detail = (
        text(scan.get(name)) for name in ("statusCode", "status", "statusDetailed")
    )
    if code is None and detail is None:
        return Raw(code=category)
    return Raw(type=category, code=code or detail, further=(detail,) if code and detail else ())


def _documented(raw: Raw, service: str, description: object) -> Meaning | None:
    """Read a code by its detail first; the description says more where the code is the category again, or one for many scans."""
    category = _category(raw)
    words = (text(description) or "",)
    printed = (*raw.further, raw.code or "")
    if service in WORDED:
        printed = (*words, *printed)
    elif _repeats_category(raw):
        printed = (*printed, *words)
    by_text = BY_TEXT.get(service, _nothing)
    for code in printed:
        known = CODES.get((service, code)) or (
            parcel_de_detail(code) if service == PARCEL_DE else None
        )
        if known is None:
            known = by_text(code)
            known = (
                None
                if known is not None
                and known.status is Status.DELIVERED
                and category not in ("", "delivered")
                else known
            )
        if known is not None:
            return known
    return None


def _nothing(_printed: str) -> None:
    """Return None: no table knows the texts of this service."""


def _category(raw: Raw) -> str:
    return (raw.type or raw.code or "").casefold().replace("_", "-").replace(" ", "-")


def _repeats_category(raw: Raw) -> bool:
    return raw.type is None or (raw.code or "").casefold() == raw.type.casefold()


def _by_category(raw: Raw) -> Meaning:
    found = CATEGORIES.get(_category(raw), UNMAPPED)
    return found if _repeats_category(raw) or found is UNMAPPED else found.of_category()


def _reread(raw: Raw) -> Meaning | None:
    """Read what the raw fields can decide: the meaning depends on the service, and without a code on the description, which they lack."""
    printed = (*raw.further, raw.code or "")
    is_text = any(is_stand_in(each) or not looks_like_code(each) for each in printed)
    depends = (
        BACK in printed
        or is_text
        or _repeats_category(raw)
        or DOCUMENTED & {*printed, *map(as_compared, printed)}
    )
    return None if depends else _by_category(raw)


def _place(location: JsonObject) -> EventPlace:
    address = child(location, "address")
    city = text(address.get("addressLocality"))
    region, country = _behind_city(city, country_code(address.get("countryCode")))
    return place(
        city=city,
        region=text(address.get("addressRegion")) or region,
        postal_code=address.get("postalCode"),
        country=country,
    )


@lru_cache(maxsize=4096)
def _behind_city(printed: str | None, country: str | None) -> tuple[str | None, str | None]:
    """Return region and country as some services print them behind the city (`Whittier, CA, US`, `LEIPZIG - GERMANY`), or in its place.

    The city itself stays as printed: it is a part of the scan's identity.
    """
    parts = [part.strip() for part in (printed or "").replace(" - ", ",").split(",")]
    named = country_code(parts[-1].title() if len(parts[-1]) > 3 else parts[-1])
    if (
        named not in known_countries()
        or (country is not None and named != country)
        or (len(parts) == 1 and len(parts[0]) < 4)
    ):
        return None, country
    return ", ".join(parts[1:-1]) or None, named


def _piece(scan: JsonObject) -> str | None:
    """Return the piece that a scan names; a scan of several is one of the shipment."""
    pieces = as_list(scan.get("pieceIds"))
    return text(pieces[0]) if len(pieces) == 1 else None


def _signer(shipment: JsonObject) -> str | None:
    signed = child(shipment, "details", "proofOfDelivery", "signed")
    names = (text(signed.get("givenName")), text(signed.get("familyName")))
    return signer(signed.get("name")) or signer(" ".join(name for name in names if name))


CARRIER: Final = Carrier(
    carrier_id="dhl_unified",
    name="DHL Shipment Tracking Unified",
    number_fields=("shipments.id", ".id", "shipment.trackingnumber"),
    normalizers={"1": normalize},
    formats=(
        "Shipment Tracking Unified push JSON",
        "Shipment Tracking Unified API JSON",
        "eCommerce Americas tracking XML",
    ),
    reread=_reread,
    texts=texts_of(CODES, TEXTS, BLUEDART_TEXTS),
    authentication=(ShipperChoice(),),
)
