"""DHL Shipment Tracking Unified: pushes and API answers in the same shape, for all DHL services.

A scan carries a category (`statusCode`) that DHL documents and, in `status`, a code or a text of
the service; where there is neither, the text is in `description`. A code or a text that the service
documents is read as such, everything else by its category. Parcel Germany prints the codes of its
own answer as `statusDetailed`, Blue Dart a single code for many texts. A delivery of a shipment
with `returnFlag` is a return to its sender. No text means a delivery where another category denies
it (DHL's own sample has `pre-transit` and `DELIVERED` in the same scan). The number is the
shipment's `id`; a piece named by a scan distinguishes it and is no shipment of its own. The XML of
DHL eCommerce Americas (formerly Global Mail) prints the same codes as its service, and its times in
the zones of the United States.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from events.carriers import kit
from events.parsing.dhl_group import (
    BLUEDART_TEXTS,
    PARCEL_DE,
    bluedart_text,
    parcel_de_detail,
    parcel_de_text,
)

# (service, code): the `status` codes that a service documents with a clear meaning.
CODES: Final = kit.meanings("dhl_unified_codes.csv")

# (service, text in lower case without the full stop): clear texts in place of a code. A `*` matches
# a name in the sentence: a place, a day.
TEXTS: Final = kit.meanings("dhl_unified_texts.csv")

BY_TEXT: Final = {
    service: kit.by_sentence(
        {words: meaning for (of, words), meaning in TEXTS.items() if of == service}
    )
    for service in {of for of, _ in TEXTS}
} | {"bluedart": bluedart_text, PARCEL_DE: parcel_de_text}
# The services that print a code for many scans, refined by the text.
WORDED: Final = frozenset({"bluedart"})

DOCUMENTED: Final = frozenset(code for _, code in (*CODES, *TEXTS))

CATEGORIES: Final = {
    "pre-transit": kit.Meaning(kit.Kind.SCAN, kit.Status.INFO_RECEIVED),
    "transit": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
    "delivered": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERED),
    "failure": kit.Meaning(kit.Kind.SCAN, kit.Status.EXCEPTION),
    "unknown": kit.Meaning(kit.Kind.INFO),
}
# The zone of a single-country service, for times without an offset at scans without a place.
ZONES: Final = {
    "ecommerce-ppl": "Europe/Prague",
    "parcel-de": "Europe/Berlin",
    "parcel-nl": "Europe/Amsterdam",
    "parcel-pl": "Europe/Warsaw",
}


def _clock(service: str, *, trust_offset: bool) -> kit.Clock:
    """Return the clock of a service; Freight prints the day of a document as its midnight."""
    return kit.Clock(
        formats=kit.ISO,
        default_zone=ZONES.get(service, "Europe/Berlin"),
        trust_offset=trust_offset,
        midnight_is_day="nowhere",
    )


CLOCKS: Final = {service: _clock(service, trust_offset=True) for service in ("", *ZONES)}
# The rollup prints the local time of its scan with a `Z`.
ROLLUP_CLOCKS: Final = {service: _clock(service, trust_offset=False) for service in CLOCKS}

AMERICAS: Final = "ecommerce"
AMERICAN_CLOCK: Final = kit.Clock(
    formats=kit.TimeFormats("%-m/%-d/%Y[ %-I:%M[:%S] %p]"), default_zone="America/New_York"
)
# The clock of the zone holds for either of its names. Some senders print the standard name all
# year.
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

BACK: Final = "returnFlag=true"

SUBSCRIPTION: Final = "subscription."
# Notices about a subscription that wait for a human. Answering them takes the shipper's own key for
# DHL, which no process of ours has.
WAITING_SUBSCRIPTIONS: Final = {
    "subscription.validate": (
        "DHL pushes nothing until this subscription is activated with the message's `secret`"
        " (docs/authentication.md)"
    ),
    "subscription.failure": "DHL says that this subscription failed; the message says why",
}

_ERROR_FIELDS: Final = frozenset({"title", "detail", "message", "error", "errors"})
_SCAN_FIELDS: Final = frozenset({"events", "status"})


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    if kit.is_xml(body):
        yield from _from_xml(kit.read_xml(body), received_at, rejections)
        return
    for where, shipment in _shipments(kit.read_json(body), rejections):
        yield from _shipment(shipment, where, received_at, rejections)


def _shipments(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    """Yield the shipments with their pointers.

    Those of a list, of an answer, or the single shipment of a push.
    """
    if type(body) is list:
        found, base = kit.objects(body, "", rejections), ""
    elif type(body) is dict and "shipments" in body:
        found, base = kit.objects_at(body, "shipments", "", rejections), "/shipments"
    # a push is a shipment by itself; `id` alone may be that of an error
    elif type(body) is dict and "id" in body and _SCAN_FIELDS & body.keys():
        yield "", body
        return
    # before the errors: a notice about a subscription may have a `message` too
    elif type(body) is dict and (scope := kit.text(body.get("scope")) or "").startswith(
        SUBSCRIPTION
    ):
        rejections.note_nothing()
        # a rejection, so that it reaches a person: nothing else would show that no push will come
        if scope in WAITING_SUBSCRIPTIONS:
            rejections.add("/scope", WAITING_SUBSCRIPTIONS[scope])
        return
    # last of the known: a shipment may hold a field called `detail` or `message`
    elif type(body) is dict and _ERROR_FIELDS & body.keys():
        return
    else:
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "no `shipments` and not a shipment of DHL Unified Tracking"
        )
    for index, shipment in found:
        yield f"{base}/{index}", shipment


def _shipment(
    shipment: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> list[kit.Reading]:
    events = shipment.get("events")
    scans = [
        (f"{where}/events/{index}", scan)
        for index, scan in kit.objects_at(
            shipment, "events", where, rejections, required="status" not in shipment
        )
    ]
    # the rollup is the newest of the events: it counts where they are left out
    if not kit.as_list(events) and (rollup := kit.child(shipment, "status")):
        scans = [(f"{where}/status", rollup)]
    number = kit.text(shipment.get("id"))
    service = (kit.text(shipment.get("service")) or "").casefold()
    journey = kit.Journey(
        _place(kit.child(shipment, "origin")), _place(kit.child(shipment, "destination"))
    )
    # some services print booleans as text
    is_back = shipment.get("returnFlag") in (True, "true")
    scanned = (
        _scan(scan, service, pointer, received_at, journey, is_back=is_back)
        for pointer, scan in scans
    )
    readings = kit.with_signer(
        kit.readings_of(
            scanned,
            number,
            rejections,
            service=kit.text(kit.child(shipment, "details", "product").get("productName")),
        ),
        _signer(shipment),
    )
    return kit.with_estimate(
        readings, kit.estimate(kit.text(shipment.get("estimatedTimeOfDelivery")), kit.ISO)
    )


def _scan(
    scan: kit.JsonObject,
    service: str,
    pointer: str,
    received_at: datetime,
    journey: kit.Journey,
    *,
    is_back: bool,
) -> kit.Scan:
    raw, at = _raw(scan), _place(kit.child(scan, "location"))
    # the service's own code says more than one of five categories
    meant = _documented(raw, service, scan.get("description")) or _by_category(raw)
    # the flag enters the raw codes, so that the log alone explains why a delivery is a return
    if is_back and meant.status is kit.Status.DELIVERED:
        raw, meant = (
            raw._replace(further=(*raw.further, BACK)),
            meant._replace(status=kit.Status.RETURNED),
        )
    # the events' own `Z` is true; that of the rollup stands behind the same local time
    printed = kit.text(scan.get("timestamp"))
    clocks = (
        ROLLUP_CLOCKS
        # an offset that is printed as such is true in the rollup too
        if pointer.endswith("/status") and printed and printed.endswith("Z")
        else CLOCKS
    )
    return kit.Scan(
        where=pointer,
        raw=raw,
        meaning=meant,
        time=clocks.get(service, clocks[""]).read(
            printed, at, received_at=received_at, journey=journey.at(meant.status)
        ),
        place=at,
        piece=_piece(scan),
        description=kit.text(scan.get("description")),
    )


def _from_xml(
    document: kit.Document, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    if document.root.tag != "track":
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "XML, but no tracking answer of DHL eCommerce Americas"
        )
    for index, shipment in enumerate(document.root.iterfind("shipment"), start=1):
        scans = (
            _xml_scan(kit.texts(event), f"shipment[{index}]/event[{at}]", received_at)
            for at, event in kit.elements_at(shipment, "event", f"shipment[{index}]", rejections)
        )
        found = kit.readings_of(scans, kit.text_at(shipment, "trackingnumber"), rejections)
        yield from kit.with_signer(found, kit.signer(kit.text_at(shipment, "signedby")))


def _xml_scan(event: dict[str, str], where: str, received_at: datetime) -> kit.Scan:
    code, description = event.get("code"), event.get("description")
    raw = kit.Raw(code=code)
    printed = f"{event.get('date', '')} {event.get('time', '')}".strip()
    # the zone's abbreviation is the last word of date or time, whichever is printed last
    before, _, zone = printed.rpartition(" ")
    named = AMERICAN_ZONES.get(zone)
    at = kit.place(
        city=event.get("city"),
        region=event.get("state"),
        postal_code=event.get("postalcode"),
        country=event.get("country"),
    )
    time = AMERICAN_CLOCK.read_with_offset(
        before if named else printed or None, named, at, received_at=received_at
    )
    return kit.Scan(
        where=where,
        raw=raw,
        meaning=CODES.get((AMERICAS, code or ""), kit.UNMAPPED),
        # the abbreviation as printed: evidence shows it beside the time
        time=replace(time, zone=zone) if time and named else time,
        place=at,
        description=description,
    )


def _raw(scan: kit.JsonObject) -> kit.Raw:
    """Return category and code; the category is the code where it is definite."""
    category, code, detail = (
        kit.text(scan.get(name)) for name in ("statusCode", "status", "statusDetailed")
    )
    # without a code of the service the category is all that there is, and definite
    if code is None and detail is None:
        return kit.Raw(code=category)
    return kit.Raw(type=category, code=code or detail, further=(detail,) if code and detail else ())


def _documented(raw: kit.Raw, service: str, description: object) -> kit.Meaning | None:
    """Read a code by its detail first.

    The description refines a code that repeats the category or covers many scans.
    """
    category = _category(raw)
    words = (kit.text(description) or "",)
    printed = (*raw.further, raw.code or "")
    if service in WORDED:
        # Blue Dart's code covers many texts: its text is the finer statement
        printed = (*words, *printed)
    elif _repeats_category(raw):
        printed = (*printed, *words)
    by_text = BY_TEXT.get(service, _nothing)
    for code in printed:
        # codes before texts: the detail of Parcel Germany is a code of its own answer
        known = CODES.get((service, code)) or (
            parcel_de_detail(code) if service == PARCEL_DE else None
        )
        if known is None:
            known = by_text(code)
            known = (
                None
                if known is not None
                and known.status is kit.Status.DELIVERED
                # DHL's own sample has `pre-transit` and `DELIVERED` in the same scan
                and category not in ("", "delivered")
                else known
            )
        if known is not None:
            return known
    return None


def _nothing(_printed: str) -> None:
    """Return None: no table knows the texts of this service."""


def _category(raw: kit.Raw) -> str:
    return (raw.type or raw.code or "").casefold().replace("_", "-").replace(" ", "-")


def _repeats_category(raw: kit.Raw) -> bool:
    # many services print the category again as the status, which adds nothing to it
    return raw.type is None or (raw.code or "").casefold() == raw.type.casefold()


def _by_category(raw: kit.Raw) -> kit.Meaning:
    found = CATEGORIES.get(_category(raw), kit.UNMAPPED)
    # a code beside the category that no table knows still raises its dead letter
    return found if _repeats_category(raw) or found is kit.UNMAPPED else found.of_category()


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read the raw fields as far as they decide.

    The meaning depends on the service, and without a code on the description, which they lack.
    """
    printed = (*raw.further, raw.code or "")
    # the clear part holds a stand-in for a text, which no table has
    is_text = any(kit.is_stand_in(each) or not kit.looks_like_code(each) for each in printed)
    depends = (
        BACK in printed
        or is_text
        or _repeats_category(raw)
        or DOCUMENTED & {*printed, *map(kit.as_compared, printed)}
    )
    return None if depends else _by_category(raw)


def _place(location: kit.JsonObject) -> kit.EventPlace:
    address = kit.child(location, "address")
    city = kit.text(address.get("addressLocality"))
    region, country = _behind_city(city, kit.country_code(address.get("countryCode")))
    return kit.place(
        city=city,
        region=kit.text(address.get("addressRegion")) or region,
        postal_code=address.get("postalCode"),
        country=country,
    )


@lru_cache(maxsize=4096)
def _behind_city(printed: str | None, country: str | None) -> tuple[str | None, str | None]:
    """Return region and country as some services print them behind the city (`Whittier, CA, US`,
    `LEIPZIG - GERMANY`), or in its place.

    The city itself stays as printed: it is a part of the scan's identity.
    """
    parts = [part.strip() for part in (printed or "").replace(" - ", ",").split(",")]
    # names of countries are compared as they are written, codes in capitals
    named = kit.country_code(parts[-1].title() if len(parts[-1]) > 3 else parts[-1])
    if (
        named not in kit.known_countries()
        # `Georgia` behind a city in the United States is a state
        or (country is not None and named != country)
        # a lone word of three letters is an airport's or a depot's code, not a country
        or (len(parts) == 1 and len(parts[0]) < 4)
    ):
        return None, country
    return ", ".join(parts[1:-1]) or None, named


def _piece(scan: kit.JsonObject) -> str | None:
    """Return the piece that a scan names; a scan of several pieces is of the shipment."""
    pieces = kit.as_list(scan.get("pieceIds"))
    # with several pieces the scan is of the shipment: a piece's name would make it another scan
    return kit.text(pieces[0]) if len(pieces) == 1 else None


def _signer(shipment: kit.JsonObject) -> str | None:
    signed = kit.child(shipment, "details", "proofOfDelivery", "signed")
    names = (kit.text(signed.get("givenName")), kit.text(signed.get("familyName")))
    # some services print the whole name, others its parts
    return kit.signer(signed.get("name")) or kit.signer(" ".join(name for name in names if name))


CARRIER: Final = kit.Carrier(
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
    texts=kit.texts_of(CODES, TEXTS, BLUEDART_TEXTS),
    authentication=(kit.ShipperChoice(),),
)
