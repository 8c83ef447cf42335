"""UPS Quantum View: what happened to all packages of an account, in files of manifests, origins, exceptions, deliveries and others.

XML and JSON have the same names. What happened is the name of an event, which is its text where none is printed; a `Generic` one has a code
as well (`ActivityType`), an exception UPS's reason. An exception whose code nobody lists is one by its name.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from lxml.etree import _Element

from events.carriers.ups_activity import CLOCK, EMPTY
from events.event import NOWHERE, EventPlace, Raw, Reading
from events.parsing.lists import JsonObject, as_list, child, object_at, objects, objects_at
from events.parsing.meanings import Meaning, finest, meanings
from events.parsing.places import place
from events.parsing.rejections import Rejections
from events.parsing.scan import Scan, reading_of
from events.parsing.text import text
from events.parsing.whereabouts import Journey
from events.vocabulary import Kind, Status

ROOT: Final = "QuantumViewResponse"
_EVENTS: Final = "QuantumViewEvents"
_BY_KIND: Final = {
    "Manifest": Meaning(Kind.SCAN, Status.INFO_RECEIVED),
    "Origin": Meaning(Kind.SCAN, Status.IN_TRANSIT),
    "Exception": Meaning(Kind.SCAN, Status.EXCEPTION),
    "Delivery": Meaning(Kind.SCAN, Status.DELIVERED),
}
GENERIC: Final = "Generic"
KINDS: Final = (*_BY_KIND, GENERIC)
_KINDS: Final = frozenset(KINDS)


class PackageEvent(NamedTuple):
    """An event of one package, with its pointer."""

    kind: str
    event: JsonObject
    package: JsonObject
    where: str


def read_quantum_view(
    response: JsonObject, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    """Yield the events of all files of an answer."""
    events = object_at(response, _EVENTS, f"/{ROOT}", rejections, required=False)
    for where, listed in _members(
        events, f"/{ROOT}/{_EVENTS}", ("SubscriptionEvents", "SubscriptionFile"), rejections
    ):
        for kind in KINDS:
            for index, event in objects_at(
                listed, kind, where, rejections, required=False, but=_KINDS
            ):
                for of in _packages(event, kind, f"{where}/{kind}/{index}", rejections):
                    yield from _reading(of, received_at, rejections)


def as_json(element: _Element) -> Any:  # noqa: ANN401 - an element is its text, or an object of its children
    """Convert an element to what JSON prints: a child that is repeated is a list."""
    if len(element) == 0:
        return (element.text or "").strip()
    found: dict[str, Any] = {}
    for member in element:
        value = as_json(member)
        present = found.get(member.tag)
        if member.tag not in found:
            found[member.tag] = value
        elif type(present) is list:
            present.append(value)
        else:
            found[member.tag] = [present, value]
    return found


def _meaning(kind: str, code: str | None) -> Meaning:
    """Read a code; one that is not known leaves the kind, where that says what happened."""
    return finest((code, _table().get((kind, code or ""))), (kind, _BY_KIND.get(kind)))


def _members(
    value: JsonObject, where: str, names: tuple[str, ...], rejections: Rejections
) -> Iterator[tuple[str, JsonObject]]:
    if not names:
        yield where, value
        return
    for index, member in objects_at(value, names[0], where, rejections, required=False):
        yield from _members(member, f"{where}/{names[0]}/{index}", names[1:], rejections)


def _packages(
    event: JsonObject, kind: str, where: str, rejections: Rejections
) -> Iterator[PackageEvent]:
    """Yield the packages: a manifest lists several, every other event is of one."""
    if kind != "Manifest" or not as_list(event.get("Package")):
        yield PackageEvent(kind, event, event, where)
        return
    for index, package in objects(event.get("Package"), f"{where}/Package", rejections):
        yield PackageEvent(kind, event, package, f"{where}/Package/{index}")


def _reading(
    of: PackageEvent, received_at: datetime, rejections: Rejections
) -> tuple[Reading, ...]:
    kind, event, package, where = of
    number = text(package.get("TrackingNumber")) or text(event.get("TrackingNumber"))
    activity = child(package, "Activity") or package
    date, clock = (
        text(activity.get("Date")) or text(event.get("PickupDate")),
        text(activity.get("Time")),
    )
    if number is None and date is None:
        rejections.add(where, EMPTY)
        return ()
    code = (
        text(event.get("ActivityType"))
        if kind == GENERIC
        else text(event.get("ReasonCode")) or text(event.get("StatusCode"))
    )
    meant = _meaning(kind, code)
    delivered = child(event, "DeliveryLocation")
    at = _place(delivered)
    at = _place(child(event, "ActivityLocation")) if at == NOWHERE else at
    shipper, consignee = (_address(child(event, end, "Address")) for end in ("Shipper", "ShipTo"))
    printed = f"{date} {clock}" if date and clock else date
    time = CLOCK.read(
        printed, at, received_at=received_at, journey=Journey(shipper, consignee).at(meant.status)
    )
    words = (
        text(event.get("ReasonDescription")),
        text(event.get("StatusDescription")),
        text(delivered.get("Description")),
    )
    service = child(event, "Service")
    return reading_of(
        Scan(
            where=where,
            raw=Raw(code=code),
            meaning=meant,
            time=time,
            place=at,
            description=next(filter(None, words), kind),
            signed_by=delivered.get("SignedForByName"),
        ),
        number,
        rejections,
        service=text(service.get("Description")) or text(service.get("Code")),
    )


def _place(location: JsonObject) -> EventPlace:
    address = child(location, "AddressArtifactFormat")
    return place(
        city=address.get("PoliticalDivision2"),
        region=address.get("PoliticalDivision1"),
        postal_code=address.get("PostcodePrimaryLow"),
        country=text(address.get("CountryCode")),
    )


def _address(address: JsonObject) -> EventPlace:
    return place(
        city=address.get("City"),
        region=address.get("StateProvinceCode"),
        postal_code=address.get("PostalCode"),
        country=text(address.get("CountryCode")),
    )


@cache
def _table() -> dict[tuple[str, ...], Meaning]:
    return meanings("ups_quantum_view_codes.csv")
