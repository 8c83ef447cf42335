"""A server of a test's own that archives its write-ahead log: backed up while it runs, replaced by
the backup, rolled forward or not.
"""

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from statesvc.database.dsns import Dsns
from statesvc.database.embedded import EmbeddedServer
from statesvc.database.postgres_programs import MAJOR, programs
from statesvc.database.server_user import choose_user
from tests.world.ports import free_port


class Cluster:
    """Cluster whose data is in the folder."""

    def __init__(self, folder: Path) -> None:
        self.data, self.backup, self.archive = (
            folder / "data",
            folder / "backup",
            folder / "data" / "archive",
        )
        self.port = free_port()
        overrides = {
            "shared_buffers": "64MB",
            "archive_mode": "on",
            "archive_command": (
                f"mkdir -p {self.archive} && test ! -f {self.archive}/%f && cp %p {self.archive}/%f"
            ),
        }
        self._server = EmbeddedServer(self.data, tcp_port=self.port, overrides=overrides)
        self.dsns = self._start()

    def _start(self) -> Dsns:
        return self._server.start()

    def base_backup(self) -> None:
        known = conninfo_to_dict(self.dsns.superuser or "")
        program, environment = (
            programs(MAJOR) / "pg_basebackup",
            {**os.environ, "PGPASSWORD": str(known["password"])},
        )
        where = ("-h", str(known["host"]), "-p", str(known["port"]), "-U", str(known["user"]))
        subprocess.run(
            [program, "-D", self.backup, *where, "--checkpoint=fast", "--no-sync"],
            env=environment,
            check=True,
        )
        owner = choose_user(self.data / "postgres")
        for path in (self.backup, *self.backup.rglob("*")):
            owner.give(path)

    def mark(self, name: str) -> None:
        """Mark a point in the write-ahead log that `restore` can go back to."""
        with psycopg.connect(self.dsns.superuser or "", autocommit=True) as connection:
            connection.execute("SELECT pg_create_restore_point(%s)", (name,))

    def restore(self, until: str | None = None) -> None:
        """Restore the backup as it was; `until`: rolled forward by the archive to this mark.

        Its clean end archives the rest of its log.
        """
        self._server.stop()
        shutil.rmtree(self.data / "postgres")
        self.backup.rename(self.data / "postgres")
        if until is not None:
            self._recover_to(until)
        self._start()

    def _recover_to(self, name: str) -> None:
        folder = self.data / "postgres"
        with (folder / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"restore_command = 'cp {self.archive}/%f %p'\n")
            settings.write(f"recovery_target_name = '{name}'\nrecovery_target_action = 'promote'\n")
        (folder / "recovery.signal").touch()
        choose_user(folder).give(folder / "recovery.signal")

    def stop(self) -> None:
        self._server.stop()
