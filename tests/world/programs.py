"""Programs that a fresh machine lacks and CI has."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest

_SBIN: Final = "/usr/sbin"
"""Not in everybody's PATH."""


def required(program: str, package: str, place: Path | None = None) -> str:
    """Where the program is, or the `place` that comes with it. Skips the test where there is none, fails it in CI."""
    found = shutil.which(program) or shutil.which(program, path=_SBIN)
    if found is not None and (place is None or place.exists()):
        return str(place or found)
    reason = f"{program} is not installed (Debian package {package})"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
