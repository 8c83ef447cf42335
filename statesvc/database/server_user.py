"""Choice of the system user that runs the embedded server: PostgreSQL refuses to run as root.

An ordinary user runs it as themselves. Root hands it to a system user that owns the data folder
alone. If a folder above the data or the programs is closed to that user (a checkout under /root),
no permission is changed: the server gets the single capability that it needs to pass, or, where the
machine gives none, an error with the remedy.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statesvc.database.postgres_programs import EmbeddedServerError

_PREFERRED: Final = "postgres"
_CREATED: Final = "statesvc"
# Least first. The second is needed where the programs may be executed by root alone.
_CAPABILITIES: Final = ("dac_read_search", "dac_override")


@dataclass(frozen=True, slots=True)
class ServerUser:
    """User that the server's programs run as. Without `uid`: as ourselves."""

    uid: int | None = None
    gid: int | None = None
    capability: str | None = None

    def run(
        self,
        command: Iterable[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end.

        Its output goes through a file: the daemon that `pg_ctl` leaves behind would hold a pipe
        open.
        """
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as given:
            given.write(stdin)
            given.seek(0)
            switch = self.capability is None and self.uid is not None
            ended = subprocess.run(  # noqa: S603 - programs of the wheel, arguments of ours
                [*self._prefix(), *map(str, command)],
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=_clean_environment() | dict(environment or {}),
                umask=0o077,
                check=False,
                user=self.uid if switch else None,
                group=self.gid if switch else None,
                extra_groups=[] if switch else None,
            )
            output.seek(0)
            return subprocess.CompletedProcess(ended.args, ended.returncode, output.read())

    def give(self, path: Path) -> None:
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def _prefix(self) -> list[str]:
        if self.capability is None:
            return []
        # the secure bit makes access(2), with which PostgreSQL looks for its
        # programs, count the capability
        return [
            shutil.which("setpriv") or "setpriv",
            f"--reuid={self.uid}",
            f"--regid={self.gid}",
            "--clear-groups",
            f"--inh-caps=+{self.capability}",
            f"--ambient-caps=+{self.capability}",
            "--securebits=+no_setuid_fixup",
            "--",
        ]


def choose_user(folder: Path) -> ServerUser:
    """Choose ourselves; for root the present owner of the data folder, else `postgres`, else a new
    system user `statesvc`.
    """
    if os.geteuid() != 0:
        return ServerUser()
    owner = folder.stat().st_uid if folder.exists() else 0
    entry = pwd.getpwuid(owner) if owner else _system_user()
    return ServerUser(entry.pw_uid, entry.pw_gid)


def with_access(user: ServerUser, *, folder: Path, postgres: Path) -> ServerUser:
    """Return the user with the access that it needs.

    Tried, not computed: ACLs and mounts matter too.
    """
    candidates = [user]
    if user.uid is not None and shutil.which("setpriv"):
        candidates += [ServerUser(user.uid, user.gid, capability) for capability in _CAPABILITIES]
    for candidate in candidates:
        if _reaches(candidate, folder, postgres):
            return candidate
    if user.uid is None:
        raise EmbeddedServerError(
            f"PostgreSQL can't run here: {postgres} does not start, or {folder} can't be entered"
        )
    raise EmbeddedServerError(
        f"PostgreSQL must not run as root, and the user {pwd.getpwuid(user.uid).pw_name!r} can't"
        f" reach {folder} or {postgres}: a folder above them is closed to others. Run statesvc as"
        " an ordinary user, or put the checkout and STATESVC_DATA_DIR below folders that others"
        " may enter (chmod o+x), or set DATABASE_URL to a server of your own."
    )


def _reaches(user: ServerUser, folder: Path, postgres: Path) -> bool:
    try:
        started = user.run([postgres, "--version"]).returncode == 0
        return (
            started
            and user.run(
                ["/bin/sh", "-c", 'cd "$1" && test -r . && test -w .', "sh", folder]
            ).returncode
            == 0
        )
    except OSError:
        return False


def _system_user() -> pwd.struct_passwd:
    for name in (_PREFERRED, _CREATED):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    useradd = shutil.which("useradd")
    if useradd is not None:
        subprocess.run(  # noqa: S603 - constant
            [useradd, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", _CREATED],
            check=False,
        )
    try:
        return pwd.getpwnam(_CREATED)
    except KeyError:
        raise EmbeddedServerError(
            "PostgreSQL must not run as root, and there is no system user 'postgres' or 'statesvc'"
            " to run it, nor could one be made. Run statesvc as an ordinary user, or set"
            " DATABASE_URL to a server of your own."
        ) from None


def _clean_environment() -> dict[str, str]:
    """Return our environment without PG* variables, which would lead the programs astray."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in {"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"}
    }
    return {"LC_ALL": "C", "TZ": "UTC", **inherited}
