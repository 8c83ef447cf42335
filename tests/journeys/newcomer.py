"""The newcomer's journey, as `docs/newcomer.md` has it: the wheel in an empty environment,
`statesvc up`, a signed webhook received.

`python -m tests.journeys.newcomer [--python python3.12] [--extras]` runs the page's own blocks, in
their order, in a folder of its own and on free ports, and prints what it measured. Exit code 1: a
step failed, or the page promises what did not happen.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.world.ports import free_port, port_for_up

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "newcomer.md"
FENCED: Final = re.compile(
    r'^```(?P<language>sh|python|json)(?: title="(?P<title>[\w.]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
SERVERS: Final = ("statesvc --env-file", "python3 receiver.py")
"""Beginnings of the last line of a block that goes on running."""
NUMBER: Final = "1ZTEST000300000011"
STEP_SECONDS: Final = 600
READY_SECONDS: Final = 180
EXTRAS: Final = "all,archive,mcp,nats,rabbitmq,kafka,redis,shovel,objectstore,otlp"
IMPORT_ALL: Final = """
import importlib, pkgutil, statesvc
names = [found.name for found in pkgutil.walk_packages(statesvc.__path__, "statesvc.") if not found.name.endswith(("__main__", "freeze"))]
for name in names: importlib.import_module(name)
print(len(names))
"""


class JourneyError(Exception):
    """A step of the page did not do what the page says."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of the page."""

    text: str
    title: str | None

    @property
    def is_server(self) -> bool:
        return self.text.rstrip().rsplit("\n", 1)[-1].startswith(SERVERS)

    def after(self, earlier: "Block") -> "Block":
        """Return the block in the terminal of an earlier one: where that went and what it
        exported.
        """
        terminal = [
            line for line in earlier.text.splitlines() if line.startswith(("cd ", "export "))
        ]
        return Block("\n".join([*terminal, self.text]), self.title)


def blocks(page: str) -> list[Block]:
    return [Block(match["text"], match["title"]) for match in FENCED.finditer(page)]


class Journey:
    """A home folder, the shell's environment, and what runs in the background."""

    def __init__(self, home: Path, python: str) -> None:
        self._home = home
        self._parcels = home / "parcels"
        self._python = python
        self._ports = {"8080": str(port_for_up()), "9000": str(free_port())}
        given = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STATESVC_", "DATABASE_URL", "VIRTUAL_ENV"))
        }
        self.environment = {
            **given,
            "HOME": str(home),
            "STATESVC_PORT": self._ports["8080"],
            "PATH": self._path(given["PATH"]),
        }
        self._servers: list[subprocess.Popen[bytes]] = []

    def _path(self, path: str) -> str:
        """Return a PATH with this interpreter as `python3`, and without the
        environment of the checkout.
        """
        programs = self._home / "bin"
        programs.mkdir()
        (programs / "python3").symlink_to(
            subprocess.check_output(
                [self._python, "-c", "import sys; print(sys.executable)"], text=True
            ).strip()
        )
        return os.pathsep.join(
            [str(programs), *(part for part in path.split(os.pathsep) if ".venv" not in part)]
        )

    def run(self, block: Block, *, folder: Path) -> str:
        """Run a block to its end, or start the server that it ends with. Return what it printed."""
        text = self._on_free_ports(block.text)
        if block.title is not None:
            self._parcels.joinpath(block.title).write_text(text)
            return ""
        if block.is_server:
            self._start(text, folder)
            return ""
        command = ["bash", "-euo", "pipefail", "-c", text]
        ended = subprocess.run(
            command,
            cwd=folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=STEP_SECONDS,
            check=False,
        )
        if ended.returncode:
            raise JourneyError(
                f"{text}\nended with {ended.returncode}:"
                f" {ended.stdout[-2000:]}{ended.stderr[-2000:]}{self.output()}"
            )
        return ended.stdout

    def _start(self, text: str, folder: Path) -> None:
        lines = text.rstrip().split("\n")
        command = "\n".join([*lines[:-1], f"exec {lines[-1]}"])
        with self._log().open("wb") as log:
            self._servers.append(
                subprocess.Popen(
                    ["bash", "-euo", "pipefail", "-c", command],
                    cwd=folder,
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                )
            )

    def _on_free_ports(self, text: str) -> str:
        for port, free in self._ports.items():
            text = text.replace(port, free)
        return text

    def until(self, seen: str, what: str) -> None:
        """Wait until a server has printed this."""
        self._until(lambda: seen in self.output(), what)

    def until_listening(self, port: str) -> None:
        url = f"http://127.0.0.1:{self._ports[port]}/"
        probe = ["curl", "--silent", "--output", os.devnull, url]
        self._until(
            lambda: subprocess.run(probe, check=False).returncode == 0, f"an answer of {url}"
        )

    def _until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not happened():
            if time.monotonic() > deadline or any(
                server.poll() is not None for server in self._servers
            ):
                raise JourneyError(f"no sign of {what}:\n{self.output()}")
            time.sleep(0.02)

    def output(self) -> str:
        return "".join(
            log.read_text(errors="replace") for log in sorted(self._home.glob("server-*.log"))
        )

    def _log(self) -> Path:
        return self._home / f"server-{len(self._servers)}.log"

    def end(self) -> None:
        """Hang up, as one who closes the terminals."""
        for server in reversed(self._servers):
            server.send_signal(signal.SIGHUP)
        for server in self._servers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(60)
            server.kill()


@contextlib.contextmanager
def journey(python: str) -> Iterator[tuple[Journey, Path]]:
    with TemporaryDirectory(prefix="newcomer-") as name:
        home = Path(name)
        started = Journey(home, python)
        try:
            yield started, home
        finally:
            started.end()


def travel(python: str, *, extras: bool) -> dict[str, object]:
    """Follow the page from its first block to its last.

    Return what was measured: seconds and bytes.
    """
    install, start, receiver, subscribe, alert, push, ask = blocks(PAGE.read_text("utf-8"))
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    with journey(python) as (newcomer, home):
        began = time.monotonic()
        newcomer.run(install, folder=ROOT)
        installed = time.monotonic()
        newcomer.run(start, folder=home)
        newcomer.until("statesvc is running", "the running service")
        running = time.monotonic()
        newcomer.run(receiver, folder=home)
        newcomer.run(subscribe, folder=home)
        newcomer.until_listening("9000")
        newcomer.run(alert, folder=home)
        pushed_at = time.monotonic()
        pushed = newcomer.run(push, folder=home)
        newcomer.until("genuine {", "a genuine notification")
        received = time.monotonic()
        if (
            '"duplicate":false' not in pushed
            or '"to":"delivered"' not in newcomer.output()
            or "FORGED" in newcomer.output()
        ):
            raise JourneyError(f"the page says otherwise: {pushed}\n{newcomer.output()}")
        answers = newcomer.run(ask.after(push), folder=home)
        if answers.count("delivered") < 3:
            raise JourneyError(f"the answers say nothing of the delivery: {answers}")
        afar = (
            "cd ~; export PATH=~/statesvc/bin:$PATH\nstatesvc --url http://localhost:8080"
            " --key-file parcels/key shipments history ups"
        )
        if "delivered" not in newcomer.run(Block(f"{afar} {NUMBER}", None), folder=home):
            raise JourneyError("with an address and a key alone the history is another one")
        (wheel,) = (ROOT / "dist").glob("*.whl")
        measured: dict[str, object] = {
            "python": subprocess.check_output(
                [home / "statesvc/bin/python", "--version"], text=True
            ).split()[1],
            "wheel_bytes": wheel.stat().st_size,
            "install_seconds": round(installed - began, 1),
            "up_seconds": round(running - installed, 1),
            "push_to_notification_seconds": round(received - pushed_at, 2),
            "total_seconds": round(received - began, 1),
        }
        if extras:
            measured["modules_imported_with_all_extras"] = _import_all(newcomer, wheel)
        return measured


def _import_all(newcomer: Journey, wheel: Path) -> int:
    """Import every module of the wheel with every extra, as nothing of the checkout is there to
    help out.
    """
    script = (
        f"~/statesvc/bin/pip install --quiet -c constraints.txt '{wheel}[{EXTRAS}]'\ncd"
        f" ~\n~/statesvc/bin/python -I -c '{IMPORT_ALL}'"
    )
    return int(newcomer.run(Block(script, None), folder=ROOT).split()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--python", default=sys.executable, help="the interpreter to travel with")
    parser.add_argument(
        "--extras",
        action="store_true",
        help="then install all extras and import every module of the wheel",
    )
    options = parser.parse_args()
    try:
        measured = travel(options.python, extras=options.extras)
    except JourneyError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(measured) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
