"""Carriers, and versions of their normalizers, from installed packages (docs/carrier-package.md).

A package names them by entry points of the group `statesvc.carriers`. An unusable entry is an
error, never left out: pushes of its carrier would be refused, and lost.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from events.carriers.carrier import Carrier, Normalizer
from events.errors import CarrierPackageError
from events.identity.recipe import Recipe

GROUP: Final = "statesvc.carriers"
_CARRIER_ID: Final = re.compile(r"[a-z0-9][a-z0-9_]{0,31}", re.ASCII)
_VERSION: Final = re.compile(r"(?!\d+\Z)[A-Za-z0-9][A-Za-z0-9_.-]{0,31}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledCarrier:
    """A carrier of another package.

    `recipe`: the identity of its scans; it is final with the first event.
    """

    carrier: Carrier
    recipe: Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledVersion:
    """Another version of a carrier that is here already: a rollout gives it a share.

    Its name is no bare number, those are ours.
    """

    carrier_id: str
    version: str
    normalize: Normalizer


def add_installed(
    carriers: MutableMapping[str, Carrier],
    recipes: dict[str, Recipe],
    points: Iterable[EntryPoint] | None = None,
) -> dict[str, str]:
    """Add the carriers of installed packages; return the package of each entry point, by name.

    Raises CarrierPackageError.
    """
    found = sorted(
        entry_points(group=GROUP) if points is None else points,
        key=lambda point: (point.name, point.value),
    )
    added = [(point, _loaded(point)) for point in found]
    # carriers first: a package may bring a version of another's
    for point, brought in sorted(added, key=lambda pair: isinstance(pair[1], InstalledVersion)):
        if why := next(_flaws(brought, carriers), None):
            raise _unusable(point, why)
        if isinstance(brought, InstalledCarrier):
            carriers[brought.carrier.carrier_id] = brought.carrier
            recipes[brought.carrier.carrier_id] = brought.recipe
        else:
            carrier = carriers[brought.carrier_id]
            versions = {**carrier.normalizers, brought.version: brought.normalize}
            carriers[brought.carrier_id] = replace(carrier, normalizers=versions)
    return {point.name: _package(point) for point, _ in added}


def _loaded(point: EntryPoint) -> InstalledCarrier | InstalledVersion:
    try:
        brought: object = point.load()
    except Exception as error:
        raise _unusable(point, f"it does not load: {type(error).__name__}: {error}") from error
    if not isinstance(brought, InstalledCarrier | InstalledVersion):
        raise _unusable(
            point,
            f"it is of type {type(brought).__name__}, no InstalledCarrier or InstalledVersion",
        )
    return brought


def _unusable(point: EntryPoint, why: str) -> CarrierPackageError:
    return CarrierPackageError(
        f"entry point {point.name} = {point.value} of {_package(point)} ({GROUP}): {why}. Mend or"
        " uninstall it"
    )


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def _flaws(
    brought: InstalledCarrier | InstalledVersion, carriers: Mapping[str, Carrier]
) -> Iterator[str]:
    if isinstance(brought, InstalledCarrier):
        carrier_id, versions = brought.carrier.carrier_id, brought.carrier.normalizers
        if carrier_id in carriers:
            yield f"there is a carrier {carrier_id!r} already; bring an InstalledVersion of it"
        if _CARRIER_ID.fullmatch(carrier_id) is None:
            yield f"{carrier_id!r} is no carrier_id: lower case letters, digits and _, at most 32"
        if brought.carrier.stable not in versions:
            yield f"its stable version {brought.carrier.stable!r} is none of {', '.join(versions)}"
        return
    if brought.carrier_id not in carriers:
        yield f"there is no carrier {brought.carrier_id!r} to bring a version of"
    elif brought.version in carriers[brought.carrier_id].normalizers:
        yield f"{brought.carrier_id} has a version {brought.version!r} already"
    if _VERSION.fullmatch(brought.version) is None:
        yield (
            f"{brought.version!r} is no version: letters, digits and _.-, at most 32, and no bare"
            " number"
        )
