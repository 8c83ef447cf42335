"""Configuration of the embedded server: durable, for a small machine, and silent about
the values in statements.

Written to `statesvc.conf` in the data folder at every start; `postgresql.conf` includes it.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

FILE_NAME: Final = "statesvc.conf"
# Names the socket where no TCP port is asked for.
DEFAULT_PORT: Final = 5432

WAL_MIB_MIN: Final = 2 * 1024
_WAL_MIB_MAX: Final = 16 * 1024
_WAL_SHARE: Final = 16
_DURABILITY: Final = MappingProxyType(
    {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
)
_SIZE: Final = MappingProxyType(
    {
        "max_connections": "100",
        "effective_cache_size": "2GB",
        "work_mem": "8MB",
        "maintenance_work_mem": "128MB",
        "wal_buffers": "16MB",
        # a webhook's commit waits for whatever of the log is not written yet: of a worker's batch
        # that were megabytes at 200ms
        "wal_writer_delay": "50ms",
        # all commits wait up to 60 ms while a new file of the log is made: those that
        # there are are used again
        "min_wal_size": f"{WAL_MIB_MIN}MB",
        # after each checkpoint every page goes into the log whole when it is first changed: on a
        # large database most of what is written
        "checkpoint_timeout": "30min",
        # a reader of one shipment locks the partitions of its time and their indexes; PostgreSQL 19
        # has room for half as many as 18
        "max_locks_per_transaction": "512",
        "random_page_cost": "1.1",
        "autovacuum_naptime": "10s",
        "jit": "off",
        "track_io_timing": "on",
        "timezone": "UTC",
    }
)
# An error's DETAIL quotes row values and its STATEMENT may hold them: neither is logged, for
# they can be personal data.
_LOG: Final = MappingProxyType(
    {
        "logging_collector": "on",
        "log_directory": "log",
        "log_filename": "postgresql-%a.log",
        "log_truncate_on_rotation": "on",
        "log_rotation_age": "1d",
        "log_rotation_size": "0",
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] %q%a ",
        "log_error_verbosity": "terse",
        "log_min_error_statement": "panic",
        "log_lock_waits": "on",
    }
)


_BUFFERS_MIB_MIN: Final = 128
_BUFFERS_MIB_MAX: Final = 1024
_MEMORY_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def _buffers_mib() -> int:
    """Return a quarter of the memory of this machine or container.

    A larger working set is written in a flood, and commits wait for the disk.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _MEMORY_LIMIT.read_text().strip()
    except OSError:
        limit = "max"
    if limit.isdecimal():
        memory = min(memory, int(limit))
    return max(_BUFFERS_MIB_MIN, min(_BUFFERS_MIB_MAX, memory // 4 // 1024**2))


def _wal_mib(folder: Path) -> int:
    """Return a sixteenth of the disk: the more of the log lies between two checkpoints, the fewer
    whole pages are written into it.
    """
    return max(
        WAL_MIB_MIN, min(_WAL_MIB_MAX, shutil.disk_usage(folder).total // _WAL_SHARE // 1024**2)
    )


def configuration(
    *, folder: Path, socket_dir: Path, tcp_port: int, overrides: Mapping[str, str]
) -> str:
    """Return the file's text for a server with its data in `folder`.

    Without `tcp_port`: socket only.
    """
    reach = {
        "unix_socket_directories": str(socket_dir),
        "unix_socket_permissions": "0700",
        "listen_addresses": "127.0.0.1" if tcp_port else "",
        "port": str(tcp_port or DEFAULT_PORT),
    }
    of_machine = {"shared_buffers": f"{_buffers_mib()}MB", "max_wal_size": f"{_wal_mib(folder)}MB"}
    settings = {**_DURABILITY, **of_machine, **_SIZE, **_LOG, **reach, **overrides}
    lines = [
        f"{name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in settings.items()
    ]
    return "\n".join(
        [
            (
                "# Written by statesvc at every start; put own settings into postgresql.auto.conf"
                " (ALTER SYSTEM)."
            ),
            *lines,
            "",
        ]
    )
