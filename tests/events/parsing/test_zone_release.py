"""Local times are read by the rules of the `tzdata` package alone, whatever the machine has."""

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from events.parsing.zones import IANA_RELEASE


@pytest.mark.usefixtures("own_processes")
def test_the_zones_of_the_machine_are_not_read(tmp_path: Path) -> None:
    vancouver = tmp_path / "America" / "Vancouver"
    vancouver.parent.mkdir()
    # one zone, always at UTC
    vancouver.write_bytes(
        b"TZif"
        + bytes(16)
        + bytes(15)
        + b"\1"
        + bytes(3)
        + b"\1"
        + bytes(3)
        + b"\4"
        + bytes(6)
        + b"UTC\0"
    )
    read = (
        "import events, zoneinfo, datetime; print(datetime.datetime(2026, 12, 1,"
        " tzinfo=zoneinfo.ZoneInfo('America/Vancouver')).utcoffset())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", read],
        env={**os.environ, "PYTHONTZPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert printed.strip() == "-1 day, 17:00:00"


def test_the_release_is_one_that_knows_the_latest_rules() -> None:
    """British Columbia keeps summer time from November 2026 on."""
    assert IANA_RELEASE >= "2026f"
    december = datetime(2026, 12, 1, tzinfo=ZoneInfo("America/Vancouver"))
    assert december.strftime("%z") == "-0700"
