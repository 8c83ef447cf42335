"""A server of a test's own, which can be backed up while it runs, and replaced by the backup."""

import os
import shutil
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from statesvc.database.dsns import Dsns
from statesvc.database.embedded import MAJOR, EmbeddedServer, programs
from statesvc.database.server_user import choose_user
from tests.acceptance.processes import free_port


class Cluster:
    """Its data is in the folder."""

    def __init__(self, folder: Path) -> None:
        self.data, self.backup = folder / "data", folder / "backup"
        self.port = free_port()
        self._server = EmbeddedServer(self.data, tcp_port=self.port, overrides={"shared_buffers": "64MB"})
        self.dsns = self._start()

    def _start(self) -> Dsns:
        return self._server.start()

    def base_backup(self) -> None:
        known = conninfo_to_dict(self.dsns.superuser or "")
        program, environment = programs(MAJOR) / "pg_basebackup", {**os.environ, "PGPASSWORD": str(known["password"])}
        where = ("-h", str(known["host"]), "-p", str(known["port"]), "-U", str(known["user"]))
        subprocess.run([program, "-D", self.backup, *where, "--checkpoint=fast"], env=environment, check=True)
        owner = choose_user(self.data / "postgres")
        for path in (self.backup, *self.backup.rglob("*")):
            owner.give(path)

    def restore(self) -> None:
        self._server.stop()
        shutil.rmtree(self.data / "postgres")
        self.backup.rename(self.data / "postgres")
        self._start()

    def stop(self) -> None:
        self._server.stop()
