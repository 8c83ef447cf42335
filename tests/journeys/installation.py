"""A service as anyone runs it: `statesvc up` on a fresh folder and a free port.

Commands reach it by its address and a key alone.
"""

import base64
import contextlib
import functools
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx

from tests.world.ports import port_for_up

ROOT: Final = Path(__file__).parents[2]
START_SECONDS: Final = 180
WAIT_SECONDS: Final = 120


class FailedStepError(Exception):
    """A step did not come to what it should."""


class Installation:
    """`home` is an empty folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = f"http://127.0.0.1:{port_for_up()}"
        given = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STATESVC_", "DATABASE_URL"))
        }
        self._elsewhere = given
        """The environment of another machine."""
        self._environment = {
            **given,
            "STATESVC_DATA_DIR": str(home / "data"),
            "STATESVC_MASTER_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
            "STATESVC_SUBSCRIBER_ALLOW": "127.0.0.0/8",
        }

    def command(self, key: str, *arguments: str, exit_code: int = 0) -> str:
        """Run a command as a holder of the key does from another machine: in an empty folder, with
        no setting of the service.
        """
        desk = self.home / "desk"
        desk.mkdir(exist_ok=True)
        (desk / "key").write_text(key, "utf-8")
        return self._run(
            ["--url", self.url, "--key-file", "key", *arguments],
            self._elsewhere,
            folder=desk,
            exit_code=exit_code,
        )

    @functools.cached_property
    def _admin(self) -> str:
        """The first key, which is made on the machine itself."""
        arguments = ["keys", "create", "--name", "admin", "--scopes", "admin", "--json"]
        made: str = json.loads(self._run(arguments, self._environment, folder=self.home))["key"]
        return made

    def _run(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        folder: Path,
        exit_code: int = 0,
    ) -> str:
        command = [sys.executable, "-m", "statesvc", *arguments]
        given = {**environment, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            command,
            env=given,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if ended.returncode != exit_code:
            raise FailedStepError(
                f"statesvc {' '.join(arguments)} ended with {ended.returncode}:"
                f" {ended.stderr[-2000:]}"
            )
        return ended.stderr if exit_code else ended.stdout

    def key(self, name: str, *scopes: str) -> str:
        made: str = json.loads(
            self.command(
                self._admin,
                "keys",
                "create",
                "--name",
                name,
                "--scopes",
                ",".join(scopes),
                "--json",
            )
        )["key"]
        return made

    def caller(self, name: str, *scopes: str) -> httpx.Client:
        """Open a client of the API with a key of its own."""
        headers = {"Authorization": f"Bearer {self.key(name, *scopes)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[None]:
        """Run it, ready, for the time of the block. `arguments`: further ones of `statesvc up`."""
        log = self.home / "up.log"
        with log.open("wb") as output:
            command = [
                sys.executable,
                "-m",
                "statesvc",
                "up",
                "--port",
                self.url.rpartition(":")[2],
                *arguments,
            ]
            process = subprocess.Popen(command, env=self._environment, stdout=output, stderr=output)
        try:
            until(lambda: is_ready(self.url), "a running service", seconds=START_SECONDS)
            yield
        except FailedStepError as failure:
            raise FailedStepError(
                f"{failure}\n{log.read_text(errors='replace')[-3000:]}"
            ) from failure
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()


@contextlib.contextmanager
def installation(name: str, *arguments: str) -> Iterator[Installation]:
    """Run an installation in a folder that goes when the block ends.

    `arguments`: further ones of `statesvc up`.
    """
    with TemporaryDirectory(prefix=f"{name}-") as folder:
        made = Installation(Path(folder))
        with made.running(*arguments):
            yield made


def is_ready(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}/readyz", timeout=5).status_code == httpx.codes.OK
    return False


def until(happened: Callable[[], bool], what: str, *, seconds: float = WAIT_SECONDS) -> None:
    """Wait for what other processes do."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            raise FailedStepError(f"no sign of {what} within {seconds:g} s")
        time.sleep(0.05)


def require(holds: object, what: str) -> None:
    """Fail the journey unless it holds."""
    if not holds:
        raise FailedStepError(what)


def answered(answer: httpx.Response, status: int = 200) -> Any:
    """Return the JSON of an answer with the status that was expected."""
    require(
        answer.status_code == status,
        f"{answer.request.method} {answer.request.url.path}: {answer.status_code}"
        f" {answer.text[:500]}",
    )
    return answer.json() if answer.content else None


def scan(number: str, status: str, *, day: int) -> dict[str, str]:
    """Build one event as `POST /v1/events` takes it."""
    return {
        "carrier_id": "ups",
        "event_id": f"{number}-{day}",
        "tracking_number": number,
        "occurred_at": f"2026-05-{day:02}T10:00:00+02:00",
        "status": status,
    }


def main(travel: Callable[[], dict[str, object]]) -> int:
    """Print what was measured as JSON; return 1 where a step failed."""
    began = time.monotonic()
    try:
        measured = travel()
    except FailedStepError as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    sys.stdout.write(
        json.dumps({**measured, "total_seconds": round(time.monotonic() - began, 1)}) + "\n"
    )
    return 0
