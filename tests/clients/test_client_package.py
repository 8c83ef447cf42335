"""The package as its users meet it: examples that type-check, types that are found, an import that is quick."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from tests.clients.installed_client import CLIENTS, build_wheel

README: Final = CLIENTS / "python" / "README.md"
EXAMPLES: Final = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.usefixtures("own_processes")
def test_the_examples_of_its_readme_type_check(installed_client: Path, tmp_path: Path) -> None:
    paths: list[Path] = []
    for number, example in enumerate(EXAMPLES):
        paths.append(tmp_path / f"example_{number}.py")
        paths[-1].write_text(example)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        os.devnull,
        "--cache-dir",
        tmp_path / "cache",
        *paths,
    ]
    environment = {**os.environ, "MYPYPATH": str(installed_client)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=170, check=False)
    assert ended.returncode == 0, ended.stdout[-2000:]


def test_the_wheel_has_its_types_and_both_clients(tmp_path: Path) -> None:
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        names = set(wheel.namelist())
    for module in ("py.typed", "aio/shipments.py", "sync/shipments.py", "core/models/shipment.py", "signatures.py"):
        assert f"statesvc_client/{module}" in names


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize("unwanted", ["httpx", "attrs"])
def test_who_only_verifies_signatures_imports_nothing_else(installed_client: Path, unwanted: str) -> None:
    program = f"import sys; from statesvc_client import verify; sys.exit({unwanted!r} in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(installed_client)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, timeout=60, check=False).returncode == 0
