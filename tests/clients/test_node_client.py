"""A client in another language: the document becomes TypeScript, and a caller's program compiles against it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.openapi_document import document
from tests.world.programs import required

NODE = Path(__file__).parents[1] / "node"
PROGRAMS = NODE / "node_modules" / ".bin"


@pytest.mark.usefixtures("own_processes")
def test_a_caller_in_typescript_compiles_against_the_types_of_the_document(tmp_path: Path) -> None:
    required("node", "nodejs")
    if not PROGRAMS.joinpath("openapi-typescript").exists():
        reason = "openapi-typescript is not installed (npm ci --prefix tests/node)"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    (tmp_path / "openapi.json").write_text(json.dumps(document()))
    shutil.copy(NODE / "caller.ts", tmp_path)
    run(tmp_path, "openapi-typescript", "openapi.json", "--output", "openapi.ts")
    run(tmp_path, "tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom", "caller.ts")


def run(folder: Path, program: str, *arguments: str) -> None:
    ended = subprocess.run([PROGRAMS / program, *arguments], cwd=folder, capture_output=True, text=True, timeout=150, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
