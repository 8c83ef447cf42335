"""The package as its users meet it: types that are found, an import that is quick."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.clients.installed_client import build_wheel, bytes_max


def test_the_wheel_has_its_types_both_clients_and_the_size_that_is_stated(tmp_path: Path) -> None:
    built = build_wheel(tmp_path)
    assert 0.8 * bytes_max("python") < built.stat().st_size < bytes_max("python")
    with zipfile.ZipFile(built) as wheel:
        names = set(wheel.namelist())
    for module in (
        "py.typed",
        "aio/shipments.py",
        "sync/shipments.py",
        "core/models/shipment.py",
        "signatures.py",
    ):
        assert f"statesvc_client/{module}" in names


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("unwanted", ["httpx", "attrs"])
def test_who_only_verifies_signatures_imports_nothing_else(
    installed_client: Path, unwanted: str
) -> None:
    program = (
        f"import sys; from statesvc_client import verify; sys.exit({unwanted!r} in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed_client)}
    assert (
        subprocess.run(
            [sys.executable, "-c", program], env=environment, timeout=60, check=False
        ).returncode
        == 0
    )
