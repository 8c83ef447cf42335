"""The Python client as `pip install clients/python` leaves it, in a folder of the test; and how
large packages may be.
"""

import re
import shutil
import zipfile
from pathlib import Path
from typing import Final

from hatchling.builders.wheel import WheelBuilder

CLIENTS: Final = Path(__file__).parents[2] / "clients"


def bytes_max(client: str) -> int:
    """Return how large the README of a client says that its package is at most."""
    said = re.search(r"less than (\d+) kB", (CLIENTS / client / "README.md").read_text("utf-8"))
    assert said, f"the README of the client in {client} states no size"
    return 1000 * int(said[1])


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, so that builds do not meet in the checkout."""
    sources = folder / "sources"
    shutil.copytree(
        CLIENTS,
        sources,
        ignore=shutil.ignore_patterns("core", "sync", "node_modules", "__pycache__"),
    )
    (wheel,) = WheelBuilder(str(sources / "python")).build(directory=str(folder / "wheels"))
    return Path(wheel)


def install_client(folder: Path) -> Path:
    """Return the folder to put on the path."""
    installed = folder / "installed"
    with zipfile.ZipFile(build_wheel(folder)) as wheel:
        wheel.extractall(installed)
    return installed
