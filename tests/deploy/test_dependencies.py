"""The packages of this environment have the versions of constraints.txt."""

import re
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

CONSTRAINTS: Final = Path(__file__).parents[2] / "constraints.txt"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_each_installed_package_has_the_pinned_version() -> None:
    pins = re.findall(r"^([\w.-]+)==(\S+)$", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)
    pinned = {canonical(name): version for name, version in pins}
    installed = {canonical(each.name): each.version for each in distributions()}
    both = pinned.keys() & installed.keys()
    assert {name: installed[name] for name in both} == {name: pinned[name] for name in both}
