"""Rules on imports that import-linter's contracts can't say."""

import re
from pathlib import Path

import grimp
import pytest

from events.carriers import MODULES as REGISTERED

HOME = "events.carriers"
SHARED = {"canonical", "carrier", "contradictions", "installed", "kit", "normalizer"}
SEVERAL_CARRIERS = {"events.parsing.dhl_group"}
"""Modules that hold what several carriers of one group share."""
MODULES = sorted(
    path.stem
    for path in (Path(__file__).parents[1] / "events" / "carriers").glob("*.py")
    if path.stem not in {"__init__", *SHARED}
)


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("events", cache_dir=None)


def carrier_of(module: str) -> str | None:
    """Return the registered carrier whose module's name this one starts with."""
    fitting = [carrier for carrier in REGISTERED if f"{module}_".startswith(f"{carrier}_")]
    return max(fitting, key=len, default=None)


@pytest.mark.parametrize("module", MODULES)
def test_a_carrier_is_written_with_the_kit_and_knows_no_other(
    graph: grimp.ImportGraph, module: str
) -> None:
    own = carrier_of(module)
    assert own is not None, (
        "a module here is registered in CARRIERS, or starts with the name of one that is"
    )
    imported = graph.find_modules_directly_imported_by(f"{HOME}.{module}")
    assert {
        name
        for name in imported - {f"{HOME}.kit"} - SEVERAL_CARRIERS
        if carrier_of(name.removeprefix(f"{HOME}.")) != own
    } == set()


def test_no_module_of_the_tests_bears_the_name_of_one_of_ours() -> None:
    # pytest puts the folder of each test on the path, for children too: there the module
    # would stand for the package
    named = {path.stem for path in Path(__file__).parent.rglob("*.py")} & {
        "events",
        "projections",
        "statesvc",
        "migrations",
    }
    assert named == set()


def test_the_tests_of_the_core_enter_no_add_on() -> None:
    here = Path(__file__).parent
    entering = {
        str(path.relative_to(here))
        for folder in ("projections", "statesvc", "migrations")
        for path in (here / folder).rglob("*.py")
        if re.search(r"^from (statesvc|tests)\.addons", path.read_text("utf-8"), re.MULTILINE)
    }
    assert entering == set(), "tests of an add-on stand in tests/addons"
