"""UPS Quantum View: all packages of an account, in files of manifests, origins, deliveries etc.

XML and JSON have the same names. The name of an event is its text where none is printed; a
`Generic` event has a code as well (`ActivityType`), an exception UPS's reason. An exception with an
unlisted code is read by its name.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from lxml.etree import _Element

from events.carriers import kit
from events.carriers.ups_activity import CLOCK, EMPTY

ROOT: Final = "QuantumViewResponse"
_EVENTS: Final = "QuantumViewEvents"
# `Generic` has no meaning of its own: its code says everything
_BY_KIND: Final = {
    "Manifest": kit.Meaning(kit.Kind.SCAN, kit.Status.INFO_RECEIVED),
    "Origin": kit.Meaning(kit.Kind.SCAN, kit.Status.IN_TRANSIT),
    "Exception": kit.Meaning(kit.Kind.SCAN, kit.Status.EXCEPTION),
    "Delivery": kit.Meaning(kit.Kind.SCAN, kit.Status.DELIVERED),
}
GENERIC: Final = "Generic"
KINDS: Final = (*_BY_KIND, GENERIC)
_KINDS: Final = frozenset(KINDS)


class PackageEvent(NamedTuple):
    kind: str
    event: kit.JsonObject
    package: kit.JsonObject
    where: str


def read_quantum_view(
    response: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    events = kit.object_at(response, _EVENTS, f"/{ROOT}", rejections, required=False)
    for where, listed in _members(
        events, f"/{ROOT}/{_EVENTS}", ("SubscriptionEvents", "SubscriptionFile"), rejections
    ):
        for kind in KINDS:
            for index, event in kit.objects_at(
                listed, kind, where, rejections, required=False, but=_KINDS
            ):
                for of in _packages(event, kind, f"{where}/{kind}/{index}", rejections):
                    yield from _reading(of, received_at, rejections)


# an element is its text, or an object of its children
def as_json(element: _Element) -> Any:  # noqa: ANN401
    """Convert an element to its JSON form: a repeated child is a list."""
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


def _meaning(kind: str, code: str | None) -> kit.Meaning:
    """Read a code; an unknown code leaves the kind, where that is definite."""
    return kit.finest((code, _table().get((kind, code or ""))), (kind, _BY_KIND.get(kind)))


def _members(
    value: kit.JsonObject, where: str, names: tuple[str, ...], rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    if not names:
        yield where, value
        return
    for index, member in kit.objects_at(value, names[0], where, rejections, required=False):
        yield from _members(member, f"{where}/{names[0]}/{index}", names[1:], rejections)


def _packages(
    event: kit.JsonObject, kind: str, where: str, rejections: kit.Rejections
) -> Iterator[PackageEvent]:
    """Yield the packages: a manifest lists several, every other event has a single package."""
    # a manifest of which the packages are left out names its only package itself
    if kind != "Manifest" or not kit.as_list(event.get("Package")):
        yield PackageEvent(kind, event, event, where)
        return
    for index, package in kit.objects(event.get("Package"), f"{where}/Package", rejections):
        yield PackageEvent(kind, event, package, f"{where}/Package/{index}")


def _reading(
    of: PackageEvent, received_at: datetime, rejections: kit.Rejections
) -> tuple[kit.Reading, ...]:
    kind, event, package, where = of
    # the package's own before that of the shipment around it
    number = kit.text(package.get("TrackingNumber")) or kit.text(event.get("TrackingNumber"))
    activity = kit.child(package, "Activity") or package
    date, clock = (
        kit.text(activity.get("Date")) or kit.text(event.get("PickupDate")),
        kit.text(activity.get("Time")),
    )
    if number is None and date is None:
        rejections.add(where, EMPTY)
        return ()
    code = (
        kit.text(event.get("ActivityType"))
        if kind == GENERIC
        # an exception's reason is finer than its status
        else kit.text(event.get("ReasonCode")) or kit.text(event.get("StatusCode"))
    )
    meant = _meaning(kind, code)
    delivered = kit.child(event, "DeliveryLocation")
    at = _place(delivered)
    # the place of the delivery is the finer one where both are printed
    at = _place(kit.child(event, "ActivityLocation")) if at == kit.NOWHERE else at
    shipper, consignee = (
        _address(kit.child(event, end, "Address")) for end in ("Shipper", "ShipTo")
    )
    printed = f"{date} {clock}" if date and clock else date
    time = CLOCK.read(
        printed,
        at,
        received_at=received_at,
        journey=kit.Journey(shipper, consignee).at(meant.status),
    )
    words = (
        kit.text(event.get("ReasonDescription")),
        kit.text(event.get("StatusDescription")),
        kit.text(delivered.get("Description")),
    )
    service = kit.child(event, "Service")
    return kit.reading_of(
        kit.Scan(
            where=where,
            raw=kit.Raw(code=code),
            meaning=meant,
            time=time,
            place=at,
            description=next(filter(None, words), kind),
            signed_by=delivered.get("SignedForByName"),
        ),
        number,
        rejections,
        service=kit.text(service.get("Description")) or kit.text(service.get("Code")),
    )


def _place(location: kit.JsonObject) -> kit.EventPlace:
    address = kit.child(location, "AddressArtifactFormat")
    return kit.place(
        city=address.get("PoliticalDivision2"),
        region=address.get("PoliticalDivision1"),
        postal_code=address.get("PostcodePrimaryLow"),
        country=kit.text(address.get("CountryCode")),
    )


def _address(address: kit.JsonObject) -> kit.EventPlace:
    return kit.place(
        city=address.get("City"),
        region=address.get("StateProvinceCode"),
        postal_code=address.get("PostalCode"),
        country=kit.text(address.get("CountryCode")),
    )


@cache
def _table() -> dict[tuple[str, ...], kit.Meaning]:
    return kit.meanings("ups_quantum_view_codes.csv")
