"""The bill of materials of a release (CycloneDX 1.6, JSON): its wheel, and what the extras of a user bring, at the versions of the constraints."""

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from deploy.packaging.dependencies import Dependency

EXTRA: Final = "statesvc:extra"
LICENCE: Final = "Apache-2.0"


class InvalidBillError(Exception):
    """The document breaks the schema of CycloneDX."""


def bill_of_materials(
    wheel: Path, version: str, listed: Collection[Dependency], built_at: datetime
) -> str:
    """Return the document, the same for the same wheel and packages. Raises InvalidBillError where it breaks the schema."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    root = _component("statesvc", version, LICENCE, ComponentType.APPLICATION)
    root.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
    components = {each.name: _of_dependency(each) for each in listed}
    metadata = BomMetaData(component=root, timestamp=built_at)
    bom = Bom(
        components=components.values(),
        metadata=metadata,
        serial_number=uuid5(NAMESPACE_URL, digest),
    )
    reached = {name for each in listed for name in each.requires}
    bom.register_dependency(
        root, [component for name, component in components.items() if name not in reached]
    )
    for each in listed:
        bom.register_dependency(components[each.name], _required(each, components))
    text: str = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    validate(text)
    return text


def validate(text: str) -> None:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        raise InvalidBillError(str(error))


def _of_dependency(each: Dependency) -> Component:
    component = _component(each.name, each.version, each.licence, ComponentType.LIBRARY)
    component.properties.update(Property(name=EXTRA, value=extra) for extra in each.extras)
    return component


def _component(name: str, version: str, licence: str, kind: ComponentType) -> Component:
    return Component(
        type=kind,
        name=name,
        version=version,
        bom_ref=f"{name}=={version}",
        purl=PackageURL("pypi", name=name, version=version),
        licenses=[LicenseFactory().make_from_string(licence)],
    )


def _required(each: Dependency, components: Mapping[str, Component]) -> list[Component]:
    return [components[name] for name in sorted(each.requires)]
