"""The ledger's only ways to the service: HTTP, and the command line as a process of its own."""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

ANSWER_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 240.0
_PAUSE_SECONDS: Final = 0.3
AWAY: Final = {0, 429, 503}
"""No answer, none yet, or too many calls of this key at a time: tried again."""


@dataclass(slots=True)
class Client:
    """The addresses of the API and of those who take webhooks are asked for at each try.

    `answers`: statuses of reads; 0: none came.
    """

    session: aiohttp.ClientSession
    url: Callable[[], str]
    ingress_url: Callable[[], str]
    key: str
    answers: Counter[int] = field(default_factory=Counter)

    async def once(
        self, method: str, path: str, body: bytes | None = None, *, accept: str = "*/*"
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Call once; status 0: no answer."""
        url = self.ingress_url() if path.startswith("/v1/webhooks/") else self.url()
        try:
            async with self.session.request(
                method,
                f"{url}{path}",
                data=body,
                headers={
                    "Authorization": f"Bearer {self.key}",
                    "Accept": accept,
                    "Content-Type": "application/json",
                },
                timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
            ) as answer:
                return answer.status, answer.headers, await answer.read()
        except (aiohttp.ClientError, TimeoutError):
            return 0, {}, b""

    async def get(self, path: str, *, accept: str = "*/*") -> tuple[int, Any]:
        """Return JSON, or text where it is none; tried until there is an answer."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            status, told, text = await self.once("GET", path, accept=accept)
            self.answers[status] += 1
            if status not in AWAY:
                return status, json.loads(text) if "json" in told.get(
                    "Content-Type", ""
                ) else text.decode()
            if time.monotonic() > until:
                raise TimeoutError(f"GET {path} had no answer for {PATIENCE_SECONDS:.0f} s")
            await asyncio.sleep(_PAUSE_SECONDS)


@dataclass(slots=True)
class CommandLine:
    """`python -m statesvc ...`, again until it says that it is done.

    `impatience`: the share of first tries that get SIGKILL halfway.
    """

    environment: Mapping[str, str]
    folder: Path
    rng: random.Random
    impatience: float = 0.0
    tries: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    """Output of tries that did not succeed, the last lines of each."""

    async def run(
        self, *arguments: str, seconds: float = 300.0, kill_after: float | None = None
    ) -> tuple[int, str]:
        """Run a command, and return exit code and standard output."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "statesvc", *arguments),
            env=dict(self.environment),
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            output, errors = await asyncio.wait_for(
                process.communicate(), seconds if kill_after is None else kill_after
            )
        except TimeoutError:
            process.kill()
            await process.wait()
            if kill_after is None:
                raise
            return -9, ""
        if process.returncode != 0:
            self.complaints.append(
                f"{' '.join(arguments)} -> {process.returncode}:"
                f" {(errors + output)[-1500:].decode(errors='replace')}"
            )
        return process.returncode or 0, output.decode()

    async def until_done(self, *arguments: str) -> str:
        """Return its standard output, once it ended with 0."""
        name = " ".join(arguments[:2]) if arguments[0] != "erase" else "erase"
        until = time.monotonic() + PATIENCE_SECONDS
        impatient = self.rng.random() < self.impatience
        while True:
            self.tries[name] += 1
            code, output = await self.run(
                *arguments, kill_after=self.rng.uniform(0.6, 2.5) if impatient else None
            )
            self.killed[name] += impatient and code == -9
            impatient = False
            if code == 0:
                return output
            if time.monotonic() > until:
                raise TimeoutError(
                    f"{' '.join(arguments)} is not done after {PATIENCE_SECONDS:.0f} s:"
                    f" {self.complaints[-1:]}"
                )
            await asyncio.sleep(_PAUSE_SECONDS)
