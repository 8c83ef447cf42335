"""The peers' own environment next to ours, made when first asked for; nothing of it
is part of the service.
"""

import asyncio
import sys
from pathlib import Path
from typing import Final

from tests.bench.bench import ROOT

PEERS: Final = ("pgqueuer", "procrastinate", "asyncpg")
_OURS: Final = ("pytest",)
"""Modules that those which we share with the tests import."""
_FOLDER: Final = ROOT / ".venv-bench"
_PYTHON: Final = _FOLDER / "bin" / "python"


async def peer_python() -> Path | str:
    """Return the interpreter that can import the peers and us; or why there is none."""
    if (
        await _run(str(_PYTHON), "-c", f"import {', '.join(PEERS)}, tests.bench.peers.same_work")
        is None
    ):
        return _PYTHON
    why = await _run(sys.executable, "-m", "venv", "--clear", str(_FOLDER))
    pins = (
        "-c",
        str(ROOT / "constraints.txt"),
        "-c",
        str(Path(__file__).parent / "constraints.txt"),
    )
    quiet = ("--quiet", "--disable-pip-version-check")
    why = why or await _run(
        str(_PYTHON), "-m", "pip", "install", *quiet, *pins, "-e", str(ROOT), *PEERS, *_OURS
    )
    return _PYTHON if why is None else f"the peers cannot be installed: {why}"


async def _run(*command: str) -> str | None:
    """Run a command; return None when it went well, otherwise its last line."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            stdin=asyncio.subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        return str(error)
    output, _ = await process.communicate()
    lines = output.decode(errors="replace").strip().splitlines()
    return (
        None
        if process.returncode == 0
        else (lines[-1] if lines else f"exit code {process.returncode}")
    )
