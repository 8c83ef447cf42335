"""What a reader copies from README and docs type-checks strictly.

`test_typescript_client.py` compiles TypeScript.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.clients.installed_client import CLIENTS
from tests.clients.planted_errors import PLANTED

ROOT: Final = CLIENTS.parent
PLANTED_HEAD: Final = (
    "from uuid import UUID\nfrom statesvc_client import Client\nclient ="
    " Client('http://a.example')\n"
)
FRAGMENTS: Final = {
    "CONTRIBUTING.md": "quotes the service, where mypy reads it",
    "docs/brokers.md": "stands in an application of Django and Celery",
    "docs/from-celery.md": "stands in an application of Django",
}


def programs() -> Iterator[tuple[str, str]]:
    """Iterate over the programs that stand alone, each with the module name of where it stands."""
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *CLIENTS.glob("*/README.md"),
        *ROOT.glob("examples/*/*.md"),
    ]
    for page in sorted(pages):
        name = str(page.relative_to(ROOT))
        blocks = re.findall(r"^```python.*\n([\s\S]*?)^```$", page.read_text("utf-8"), re.MULTILINE)
        if name not in FRAGMENTS:
            yield from ((f"{name} {number}", block) for number, block in enumerate(blocks))
        else:
            assert blocks, f"{name} has no Python any more"
    worker = ROOT / "examples" / "foreign_worker" / "worker.py"
    yield "foreign worker", worker.read_text("utf-8")


@pytest.mark.usefixtures("own_processes")
def test_all_programs_in_python_type_check_and_each_planted_error_is_found(
    installed_client: Path, tmp_path: Path
) -> None:
    paths = []
    for name, program in programs():
        paths.append(tmp_path / f"{re.sub(r'[^a-zA-Z0-9]+', '_', name)}.py")
        paths[-1].write_text(program)
    assert paths
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED_HEAD + "\n".join(call for call, _ in PLANTED.values()))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        os.devnull,
        "--cache-dir",
        os.devnull,
    ]
    environment = {**os.environ, "MYPYPATH": str(installed_client)}
    ended = subprocess.run(
        [*command, planted, *paths],
        env=environment,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    found = re.findall(r"(\w+)\.py:(\d+): error", ended.stdout)
    first = PLANTED_HEAD.count("\n") + 1
    lines = range(first, first + len(PLANTED))
    assert set(found) == {("planted", str(line)) for line in lines}, ended.stdout[-4000:]
