"""import-linter refuses one import of each forbidden kind, planted in a copy of the tree."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
