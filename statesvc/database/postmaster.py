"""Reader of `postmaster.pid`, checked against the process that it names: after a crash another
process may have its id.
"""

import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from statesvc.database.postgres_programs import EmbeddedServerError

PID_FILE: Final = "postmaster.pid"
_READY: Final = "ready"
_PID: Final = re.compile(r"[1-9][0-9]{0,8}")
_PROGRAMS: Final = frozenset({"postgres", "postmaster"})

_log = structlog.get_logger()


class Listening(NamedTuple):
    socket_dir: Path
    port: int


def running_pid(folder: Path) -> int | None:
    """Return the process that serves the data folder; None when none does."""
    pid = recorded_pid(folder)
    return pid if pid is not None and _is_server(pid, folder) else None


def recorded_pid(folder: Path) -> int | None:
    """Return the process that the file names, true or not."""
    lines = _lines(folder)
    return int(lines[0]) if lines and _PID.fullmatch(lines[0]) else None


def refuse_doubtful(folder: Path) -> None:
    """Raise EmbeddedServerError where the file names a process that may have to do with the folder,
    and is no server of it.
    """
    pid = recorded_pid(folder)
    if pid is None or _is_server(pid, folder):
        return
    command = _command_line(pid).split("\0")
    if str(folder) in command:
        raise EmbeddedServerError(
            f"{folder / PID_FILE} names process {pid} ({' '.join(command).strip()[:200]}), which is"
            " no PostgreSQL, and whose arguments name the folder: end that process, or remove the"
            " file if no server runs here"
        )


def set_aside_unusable(folder: Path) -> None:
    """Rename a file that no server can have written whole, and say so: PostgreSQL
    refuses to start beside it.
    """
    path = folder / PID_FILE
    if not path.exists() or recorded_pid(folder) is not None:
        return
    # kept, not removed: it may be what is left of a full disk, which somebody will want to see
    path.replace(path.with_name(f"{PID_FILE}.unusable"))
    _log.warning(
        "pid_file_set_aside",
        why=f"{path} names no process, as after a power cut: it is now {PID_FILE}.unusable",
    )


def listening_at(folder: Path) -> Listening | None:
    """Return the address of a running server that takes connections."""
    lines = _lines(folder)
    # the eighth line is the server's state, `ready` since PostgreSQL 10; it is written last
    if len(lines) < 8 or lines[7] != _READY or running_pid(folder) is None:
        return None
    return Listening(Path(lines[4]), int(lines[3]))


def _lines(folder: Path) -> list[str]:
    try:
        return [
            line.strip() for line in (folder / PID_FILE).read_text(errors="replace").splitlines()
        ]
    except FileNotFoundError:
        return []


def _is_server(pid: int, folder: Path) -> bool:
    program, *arguments = _command_line(pid).split("\0")
    if Path(program).name not in _PROGRAMS:
        return False
    if str(folder) in arguments:
        return True
    # a postmaster works in its data folder, however that was written on its command line
    with suppress(OSError):
        return Path(f"/proc/{pid}/cwd").samefile(folder)
    return False


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
