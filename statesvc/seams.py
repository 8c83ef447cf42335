"""The seams at which add-ons join the service, and the add-ons that are on.

The core imports no add-on. At a seam it asks here for the parts of add-ons: each declares its parts
as `module:name`, and a part is imported when it is first asked for, so that a command or a role
loads only the parts that it runs. STATESVC_ADDONS names the add-ons that are on.
"""

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, Final

VARIABLE: Final = "STATESVC_ADDONS"


@dataclass(frozen=True, slots=True)
class ListedCommand:
    """The module of a command, and a line about it.

    `calls_api`: it can make its calls of a service somewhere else.
    """

    module: str
    summary: str
    calls_api: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOn:
    """The parts of an add-on, each as `module:name`; empty if it has none.

    `commands` by the group of `statesvc --help`. `paths` and `schemes`: the calls and the
    targets that are answered with the add-on's name while it is off. `operations`: of the API.
    `computations`: by name, for the computing processes. `pages`: routes beside the API.
    `lasting_calls`: makes calls of the role api that no deadline ends, and their component, which
    stops when the drain begins. `jobs`: by role, the makers of its components (of `sealer` with
    the sealer as well). `findings`: checks of the running service.
    `doctor`: checks of the installation. `targets`: the kind of target of its schemes.
    `history`: the module that reads archived files. `cluster`: opens a cluster that reads whole
    logs. `documents`: verifies a file. `catch_up`: does at once the work that the jobs would have
    done by now. `warm_up`: runs once before roles fork.
    """

    commands: Mapping[str, Mapping[str, ListedCommand]] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    operations: str = ""
    computations: Mapping[str, str] = field(default_factory=dict)
    pages: str = ""
    lasting_calls: str = ""
    jobs: Mapping[str, str] = field(default_factory=dict)
    findings: str = ""
    doctor: str = ""
    targets: str = ""
    history: str = ""
    cluster: str = ""
    documents: str = ""
    catch_up: str = ""
    warm_up: str = ""


class UnknownAddOnError(ValueError):
    """STATESVC_ADDONS names an add-on that does not exist."""

    def __init__(self, name: str) -> None:
        close = difflib.get_close_matches(name, list(every_addon()), n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(every_addon())}"
        super().__init__(f"{VARIABLE} names {name}, which is no add-on: {hint}")


@cache
def every_addon() -> Mapping[str, AddOn]:
    """Return all add-ons of this release by name."""
    names: tuple[str, ...] = import_module("statesvc.addons").ADDONS
    return {name: import_module(f"statesvc.addons.{name}").ADDON for name in names}


def active_addons() -> Mapping[str, AddOn]:
    """Return the active add-ons: those of STATESVC_ADDONS, or all if it is not set.

    Raises UnknownAddOnError.
    """
    chosen = os.environ.get(VARIABLE)
    return every_addon() if chosen is None else _chosen(chosen)


@cache
def _chosen(text: str) -> Mapping[str, AddOn]:
    names = [name for part in text.split(",") if (name := part.strip())]
    for name in names:
        if name not in every_addon():
            raise UnknownAddOnError(name)
    return {name: addon for name, addon in every_addon().items() if name in names}


def is_on(name: str) -> bool:
    return name in active_addons()


def addon_of_module(module: str) -> str | None:
    """Return the add-on that a module belongs to; None: the core."""
    _, is_of_addon, rest = module.partition("statesvc.addons.")
    return rest.partition(".")[0] if is_of_addon else None


def left_out() -> Mapping[str, AddOn]:
    active = active_addons()
    return {name: addon for name, addon in every_addon().items() if name not in active}


def sentence(name: str, about: str) -> str:
    """Return a sentence about a use that needs an add-on that is off."""
    return f"{about} needs the add-on {name}, which {VARIABLE} leaves out here"


def parts(seam: str) -> Iterator[Any]:
    """Yield the parts that the active add-ons bring to a seam."""
    for addon in active_addons().values():
        if reference := getattr(addon, seam):
            yield resolve_name(reference)


def named_parts(seam: str) -> Iterator[tuple[str, Any]]:
    """Yield the same of a seam that has several by name."""
    for addon in active_addons().values():
        for name, reference in getattr(addon, seam).items():
            yield name, resolve_name(reference)
