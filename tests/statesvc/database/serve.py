"""Run as a process by the tests: serves a data directory until its standard input ends, says each
step on standard output.
"""

import sys
from pathlib import Path

from statesvc.database.embedded import EmbeddedServer
from statesvc.database.postgres_programs import DataInUseError

server = EmbeddedServer(Path(sys.argv[1]), overrides={"fsync": "off", "shared_buffers": "32MB"})
try:
    dsns = server.start()
except DataInUseError as refused:
    sys.exit(str(refused))
print(dsns.superuser, flush=True)  # noqa: T201 - how the test learns of it
sys.stdin.read()
server.stop()
