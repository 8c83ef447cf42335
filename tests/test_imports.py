"""Rules on imports: import-linter refuses one of each forbidden kind, planted in a copy of the tree, and those that its contracts can't say."""

import re
import shutil
import subprocess
import sys
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


ROOT = Path(__file__).parents[1]
LINT = Path(sys.executable).with_name("lint-imports")
FLOORS = "The floors of the service: every package has one, every import runs down BROKEN"
ADDONS = "Add-ons stand beside each other: none imports another BROKEN"
PLANTED = {
    "statesvc/append/transaction.py": ("statesvc.addons.archive.month", FLOORS),
    "statesvc/roles/api_role.py": ("statesvc.addons.console.routes", FLOORS),
    "statesvc/cli/status.py": ("statesvc.addons.verify.verify_log", FLOORS),
    "statesvc/queue/claim.py": ("statesvc.worker.worker_loop", FLOORS),
    "statesvc/addons/console/overview.py": ("statesvc.addons.evidence.bundle", ADDONS),
    "statesvc/addons/verify/chain.py": ("statesvc.addons.archive.month", ADDONS),
    "projections/fold.py": (
        "statesvc.seams",
        "Imports run one way: events <- projections <- statesvc BROKEN",
    ),
    "events/vocabulary.py": (
        "events.event",
        "Nothing imports what imports it, at any depth BROKEN",
    ),
    "events/event.py": ("asyncio", "The core is pure: no I/O, no clock, no log BROKEN"),
    "statesvc/delivery/limiter/signal.py": (
        "time",
        "The limiter is pure: time is an argument BROKEN",
    ),
}


@pytest.mark.usefixtures("own_processes")
def test_each_forbidden_import_is_refused(tmp_path: Path) -> None:
    for package in ("statesvc", "events", "projections"):
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("*.csv", "fonts")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert lint(tmp_path).returncode == 0
    for file, (module, _) in PLANTED.items():
        path = tmp_path / file
        path.write_text(f"{path.read_text('utf-8')}\nimport {module}\n", "utf-8")
    found = lint(tmp_path)
    assert found.returncode == 1
    for file, (module, refusal) in PLANTED.items():
        importer = file.removesuffix(".py").replace("/", ".")
        # a circle is printed without the package that it is in
        text = " ".join(found.stdout.split()).replace(" .", " events.")
        assert refusal in text
        assert f"{importer} -> {module}" in text, text


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    # without its own path the installed tree would be looked at
    return subprocess.run(
        [LINT, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
