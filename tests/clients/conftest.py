"""The client that tests import: built once a process, from the sources of this checkout."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.installed_client import install_client


@pytest.fixture(scope="session")
def installed_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = install_client(tmp_path_factory.mktemp("client"))
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
