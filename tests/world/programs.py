"""Programs that a fresh machine lacks and CI has."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NoReturn

import pytest

_SBIN: Final = "/usr/sbin"
"""Not in everybody's PATH."""
_OPT: Final = "/opt/patroni/bin"
_PATRONI_MIN: Final = (4, 1)


def required(program: str, package: str, place: Path | None = None) -> str:
    """Return where the program is, or the `place` that comes with it.

    Skips the test where there is none, fails it in CI.
    """
    found = shutil.which(program) or shutil.which(program, path=_SBIN)
    if found is None or (place is not None and not place.exists()):
        _lacking(f"{program} is not installed (Debian package {package})")
    return str(place or found)


def required_patroni() -> str:
    """Return Patroni as docs/high-availability.md has it installed, or the one in PATH
    if that is new enough.
    """
    program = shutil.which("patroni", path=_OPT) or shutil.which("patroni")
    guide = "see docs/high-availability.md: /opt/patroni"
    if program is None:
        _lacking(f"patroni is not installed ({guide})")
    version = subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()[-1]
    if tuple(map(int, version.split(".")[:2])) < _PATRONI_MIN:
        _lacking(
            f"{program} is {version}, which does not survive a primary that was cut off ({guide})"
        )
    return program


def required_moto() -> str:
    return _of_environment("moto_server", "moto")


def required_envoy() -> str:
    return _of_environment("envoy", "envoy")


def required_witness() -> str:
    return _of_environment("aics-witness", "witness")


def _of_environment(program: str, name: str) -> str:
    """Return the program of the environment in `/opt` that `.ci/run` makes, or the one in PATH."""
    found = shutil.which(program, path=f"/opt/{name}/bin") or shutil.which(program)
    if found is None:
        _lacking(f"{program} is not installed (CONTRIBUTING.md: /opt/{name})")
    return found


def _lacking(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
