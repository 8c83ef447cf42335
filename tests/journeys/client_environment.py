"""The Python client as its users have it: its wheel, installed into an empty environment."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from tests.clients.installed_client import build_wheel
from tests.journeys.installation import FailedStepError


def client_environment(home: Path) -> Path:
    """Return the interpreter of an environment in `home` that has the client, and
    nothing of ours besides.
    """
    environment = home / "environment"
    run([sys.executable, "-m", "venv", environment])
    python = environment / "bin" / "python"
    # the generator says what it does, and the output is the journey's
    with contextlib.redirect_stdout(sys.stderr):
        wheel = build_wheel(home / "client")
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel])
    return python


def run(
    command: list[str | Path],
    *,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Return what a program printed. Raises FailedStepError where it fails."""
    ended = subprocess.run(
        command,
        env=os.environ | (environment or {}),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if ended.returncode:
        raise FailedStepError(
            f"{command[0]} ended with {ended.returncode}:"
            f" {ended.stdout[-1000:]}{ended.stderr[-2000:]}"
        )
    return ended.stdout
