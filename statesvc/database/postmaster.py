"""Reader of `postmaster.pid`, checked against the process that it names: after a crash another process may have its id."""

import subprocess
from pathlib import Path
from typing import Final, NamedTuple

PID_FILE: Final = "postmaster.pid"
_READY: Final = "ready"


class Listening(NamedTuple):
    """Address on which a server takes connections."""

    socket_dir: Path
    port: int


def running_pid(folder: Path) -> int | None:
    """Return the process that serves the data folder; None when none does."""
    pid = recorded_pid(folder)
    return pid if pid is not None and str(folder) in _command_line(pid).split("\0") else None


def recorded_pid(folder: Path) -> int | None:
    """Return the process that the file names, true or not."""
    lines = _lines(folder)
    return int(lines[0]) if lines and lines[0].isdigit() else None


def listening_at(folder: Path) -> Listening | None:
    """Return the address of a running server that takes connections."""
    lines = _lines(folder)
    if len(lines) < 8 or lines[7] != _READY or running_pid(folder) is None:
        return None
    return Listening(Path(lines[4]), int(lines[3]))


def _lines(folder: Path) -> list[str]:
    try:
        return [line.strip() for line in (folder / PID_FILE).read_text().splitlines()]
    except FileNotFoundError:
        return []


def _command_line(pid: int) -> str:
    """Return arguments joined by NUL; empty when the process is gone."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return ""
    listed = subprocess.run(  # noqa: S603 - a number
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    executable, _, folder = listed.stdout.strip().partition(" -D ")
    return f"{executable}\0{folder}"
