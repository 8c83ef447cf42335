"""Deaths of the children of `up`: the supervisor, which has no database, writes them into a file;
living children read it.
"""

import json
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """One death.

    `exit_code` negative: the signal; `ended_at`: Unix time of this machine's clock.
    """

    roles: Sequence[str]
    pid: int
    exit_code: int
    out_of_memory: bool
    ended_at: float


def record_death(path: Path, death: Death) -> None:
    with path.open("a") as file:
        file.write(json.dumps(asdict(death)) + "\n")


def read_deaths(path: Path, offset: int) -> tuple[list[Death], int]:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            lines = file.read()
    except FileNotFoundError:
        return [], offset
    # the last line may be half written
    whole = lines[: lines.rfind(b"\n") + 1]
    return [Death(**json.loads(line)) for line in whole.splitlines()], offset + len(whole)


def out_of_memory_kills() -> int:
    """Return how often the kernel has ended a process of this machine for want of memory."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def cause_of_death(exit_code: int, *, out_of_memory: bool) -> str:
    """Return the cause in words."""
    if out_of_memory:
        return "the kernel killed it, out of memory"
    if exit_code >= 0:
        return f"exit code {exit_code}; its last log lines say why"
    try:
        return f"killed by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"killed by signal {-exit_code}"
