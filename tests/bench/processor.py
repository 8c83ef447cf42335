"""Usage of processes: of the processors and of the memory.

As Linux counts it; nothing elsewhere.
"""

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PARENT, _OWN, _CHILDREN = 1, slice(11, 13), slice(11, 15)
"""Fields of /proc/PID/stat after the name: the parent, own time, own time and that of
children that have ended.
"""


def own_cpu_seconds() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def server_cpu_seconds(data: Path) -> float:
    """Return those of the server of this data directory and all its processes, ended ones too; 0.0
    where the system does not tell.
    """
    postmaster = int((data / "postmaster.pid").read_text().split()[0])
    total = 0
    for pid, fields in _processes():
        if pid == postmaster:
            total += sum(map(int, fields[_CHILDREN]))
        elif int(fields[_PARENT]) == postmaster:
            total += sum(map(int, fields[_OWN]))
    return total / _TICKS


def descendants(pid: int) -> dict[int, float]:
    """Return the processor seconds of a process and of all that it started and
    their children, by process.
    """
    used = {
        each: (int(fields[_PARENT]), sum(map(int, fields[_OWN])) / _TICKS)
        for each, fields in _processes()
    }
    found = {pid: used[pid][1]}
    while added := {
        each: seconds
        for each, (parent, seconds) in used.items()
        if parent in found and each not in found
    }:
        found |= added
    return found


def command_line(pid: int) -> str:
    """Return the command line of a process, or its title."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def pss_bytes(pid: int) -> int:
    """Return its memory, with pages that several processes share divided between them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def _processes() -> Iterator[tuple[int, list[str]]]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
