"""The packages that statesvc runs with, as this environment has them: what `pyproject.toml` asks for, and what those ask for in turn.

`python -m deploy.packaging.dependencies` writes the table of `docs/dependencies.md`.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "dependencies.md"
CONSTRAINTS: Final = ROOT / "constraints.txt"
BEGIN: Final = "<!-- written by python -m deploy.packaging.dependencies -->\n"
END: Final = "<!-- end -->\n"
NOT_SHIPPED: Final = "dev"
SPDX: Final[Mapping[str, str]] = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
}
"""Identifiers for what older metadata says in words."""


class DependencyError(Exception):
    """A package is not there as the constraints have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """A package that is installed. `extras`: those of ours that bring it; none where every installation has it."""

    name: str
    version: str
    licence: str
    extras: frozenset[str]
    requires: frozenset[str]


@dataclass(slots=True)
class _Found:
    """What the walk knows of a package. `reached_from`: extras of ours, and the empty string for what is always installed."""

    installed: Distribution
    reached_from: set[str] = field(default_factory=set)
    requires: set[str] = field(default_factory=set)


def dependencies(project: Mapping[str, Any], constraints: Mapping[str, str]) -> list[Dependency]:
    """Return all, by name. Raises DependencyError where one is missing, is not pinned, or has another version than its pin."""
    found: dict[str, _Found] = {}
    for extra, requirements in our_requirements(project).items():
        _walk(requirements, extra, found, set())
    listed = [
        Dependency(
            name=name,
            version=package.installed.version,
            licence=licence(package.installed),
            extras=frozenset() if "" in package.reached_from else frozenset(package.reached_from),
            requires=frozenset(package.requires),
        )
        for name, package in sorted(found.items())
    ]
    wrong = [
        f"{each.name} {each.version}"
        for each in listed
        if constraints.get(each.name) != each.version
    ]
    if wrong:
        raise DependencyError(
            f"installed, but not pinned so in constraints.txt: {', '.join(wrong)}"
        )
    return listed


def our_requirements(project: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what each extra of a user asks for; by the empty string what every installation has."""
    extras = {
        name: asked
        for name, asked in project["optional-dependencies"].items()
        if name != NOT_SHIPPED
    }
    return {
        "": project["dependencies"],
        **{name: asked for name, asked in extras.items() if not any(map(_is_ours, asked))},
    }


def _is_ours(requirement: str) -> bool:
    return Requirement(requirement).name == "statesvc"


def _walk(
    requirements: Iterable[str], ours: str, found: dict[str, _Found], seen: set[tuple[str, str]]
) -> set[str]:
    """Add what is asked for to `found`. Return the names that are asked for directly. `seen`: packages and extras of theirs already walked."""
    names: set[str] = set()
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        names.add(name)
        package = found.setdefault(name, _Found(_installed(name)))
        package.reached_from.add(ours)
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                package.requires |= _walk(_asked_by(package.installed, extra), ours, found, seen)
    return names


def _asked_by(installed: Distribution, extra: str) -> Iterator[str]:
    """Yield what a package asks for here; with an extra of its own, what that adds."""
    for text in installed.requires or ():
        marker = Requirement(text).marker
        always = marker is None or marker.evaluate({"extra": ""})
        if always is not bool(extra) and (
            always or (marker is not None and marker.evaluate({"extra": extra}))
        ):
            yield text


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise DependencyError(f"{name} is not installed: make check installs all extras") from error


def licence(installed: Distribution) -> str:
    """Return the licence that a package states, as an SPDX expression where it says it in older words."""
    metadata = installed.metadata
    classified = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier") or ()
        if text.startswith("License ::")
    ]
    written = [
        text for name in ("License-Expression", "License") for text in metadata.get_all(name) or ()
    ]
    stated = written[0] if written else " OR ".join(SPDX.get(text, text) for text in classified)
    if not stated:
        raise DependencyError(f"{metadata['Name']} states no licence")
    return SPDX.get(stated, stated)


def pinned(text: str) -> dict[str, str]:
    """Return the version of each package in a constraints file."""
    pins = re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def runtime_dependencies() -> list[Dependency]:
    """Return what the project of this checkout runs with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return dependencies(project, pinned(CONSTRAINTS.read_text("utf-8")))


def table(listed: Iterable[Dependency]) -> str:
    rows = [
        f"| `{each.name}` | {each.licence} | {', '.join(sorted(each.extras)) or 'always'} |\n"
        for each in listed
    ]
    return "| package | licence | comes with |\n|---|---|---|\n" + "".join(rows)


def page(text: str, listed: Iterable[Dependency]) -> str:
    """Return the page with the table of today."""
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    return f"{before}{BEGIN}{table(listed)}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--pins", action="store_true", help="print each with its version besides, as pip takes them"
    )
    options = parser.parse_args()
    listed = runtime_dependencies()
    PAGE.write_text(page(PAGE.read_text("utf-8"), listed), "utf-8")
    if options.pins:
        sys.stdout.write("".join(f"{each.name}=={each.version}\n" for each in listed))


if __name__ == "__main__":
    main()
