"""The packages of this environment are those of constraints.txt."""

import re
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

CONSTRAINTS: Final = Path(__file__).parents[2] / "constraints.txt"
NOT_PINNED: Final = {"pip", "setuptools", "statesvc", "statesvc-client", "wheel"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_each_installed_package_has_its_pin() -> None:
    pins = re.findall(r"^([\w.-]+)==(\S+)$", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)
    pinned = {(canonical(name), version) for name, version in pins}
    installed = {(canonical(each.name), each.version) for each in distributions()}
    assert {each for each in installed - pinned if each[0] not in NOT_PINNED} == set()
