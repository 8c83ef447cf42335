"""What was used of the processors, by this process with its children, and by a server with all its processes."""

import os
import resource
from pathlib import Path


def own_cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def server_cpu_seconds(data: Path) -> float:
    """Of the server of this data directory and all its processes, those that have ended too; 0.0 where the system does not tell."""
    postmaster = int((data / "postmaster.pid").read_text().split()[0])
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == postmaster:
            total += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster:
            total += sum(map(int, fields[11:13]))
    return total / os.sysconf("SC_CLK_TCK")
