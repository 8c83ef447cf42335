"""Rules on imports that import-linter's contracts can't say."""

from pathlib import Path

import grimp
import pytest

from events.carriers import CARRIERS

SHARED = {"carrier"}
MODULES = sorted(path.stem for path in (Path(__file__).parents[1] / "events" / "carriers").glob("*.py") if path.stem != "__init__")


def family(module: str) -> str | None:
    """The carrier that a module belongs to: the longest id that it starts with."""
    fitting = [carrier_id for carrier_id in CARRIERS if f"{module}_".startswith(f"{carrier_id}_")]
    return max(fitting, key=len, default=None)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("events", cache_dir=None)


@pytest.mark.parametrize("module", [module for module in MODULES if module not in SHARED])
def test_a_carrier_knows_no_other_carrier(graph: grimp.ImportGraph, module: str) -> None:
    home = "events.carriers."
    imported = {name.removeprefix(home) for name in graph.find_modules_directly_imported_by(home + module) if name.startswith(home)}
    assert family(module) is not None, "a module here starts with the id of its carrier"
    assert {name for name in imported - SHARED if family(name) != family(module)} == set()
