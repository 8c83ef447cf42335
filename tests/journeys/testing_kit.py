"""The journey of a team's tests: `python -m tests.journeys.testing_kit` installs the wheel and the
client's testing kit and runs ten tests.

In an environment of its own, from an empty folder. Prints what was measured; exit
code 1: a step failed.
"""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.journeys.installation import ROOT, FailedStepError, main, require

PAGE: Final = ROOT / "docs" / "testing.md"
TESTS: Final = """

import pytest


@pytest.mark.parametrize("carrier", ["ups", "fedex", "usps", "dhl_unified", "dhl_express", "easypost"])
def test_each_carrier_delivers(statesvc, carrier):
    assert statesvc.push(carrier, "delivered").status == "delivered"


def test_a_repeat_has_the_same_id(statesvc):
    assert signed_notification(webhook_id="n1-a").id == statesvc.signed_notification(webhook_id="n1-a").id == "n1-a"
"""


def travel() -> dict[str, object]:
    """Take the page's own test file, and seven tests more."""
    text = next(part for part in PAGE.read_text("utf-8").split("```python\n")[1:]).split("```")[0]
    with TemporaryDirectory(prefix="testing-kit-") as folder:
        home, began = Path(folder), time.monotonic()
        run([sys.executable, "-m", "venv", home / "venv"])
        python = home / "venv" / "bin" / "python"
        install: list[str | Path] = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        run(
            [
                *install,
                "--constraint",
                ROOT / "constraints.txt",
                f"{ROOT}[embedded]",
                f"{ROOT / 'clients' / 'python'}[testing]",
            ]
        )
        installed = time.monotonic()
        (home / "test_user.py").write_text(text + TESTS)
        printed = run([python, "-m", "pytest", "-q", "test_user.py"], folder=home)
        seconds = time.monotonic() - installed
    require("10 passed" in printed, printed)
    return {"installed_seconds": round(installed - began, 1), "tests_seconds": round(seconds, 1)}


def run(command: list[str | Path], *, folder: Path | None = None) -> str:
    """Return what a program printed."""
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    if ended.returncode:
        raise FailedStepError(
            f"{command[0]} ended with {ended.returncode}:"
            f" {ended.stdout[-3000:]}{ended.stderr[-2000:]}"
        )
    return ended.stdout


if __name__ == "__main__":
    sys.exit(main(travel))
