"""The service's processes in a story: one that ends is started again, as its supervisor does; a
death nobody ordered is written down.
"""

import asyncio
import random
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from tests.acceptance.processes import RoleProcess, Service
from tests.world.ports import free_port

_PAUSE_SECONDS: Final = 0.5
_STOP_SECONDS: Final = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One place in the crew. `program`: how it is started, by default as the service is."""

    role: str
    program: Sequence[str] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


class Member:
    """Holder of a post: one process after another, always on the same port."""

    def __init__(self, service: Service, post: Post) -> None:
        self.post = post
        self.port = free_port()
        self.starts = 0
        self.deaths: list[str] = []
        """Those that nobody ordered."""
        self._service = service
        self._process: RoleProcess | None = None
        self._expected = False
        self._stopping = False

    @property
    def process(self) -> RoleProcess:
        """The present process."""
        if self._process is None:
            raise RuntimeError("not started yet")
        return self._process

    @property
    def alive(self) -> bool:
        """True if it runs, frozen or not."""
        return self._process is not None and self._process.process.returncode is None

    async def begin(self) -> None:
        self._expected = self._stopping = False
        self.starts += 1
        self._process = await self._service.spawn(
            self.post.role, self.post.settings, port=self.port, program=self.post.program
        )

    async def keep(self) -> None:
        """Start the process again whenever it ends."""
        while True:
            code = await self.process.process.wait()
            if self._stopping:
                return
            if not self._expected:
                self.deaths.append(
                    f"{self.post.role} ended by itself with"
                    f" {code}:\n{self.process.log.read_text()[-3000:]}"
                )
            await asyncio.sleep(_PAUSE_SECONDS)
            await self.begin()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._expected = True
        self.process.kill()

    def freeze(self) -> None:
        """Send SIGSTOP."""
        self.process.send(signal.SIGSTOP)

    def wake(self) -> None:
        """Send SIGCONT."""
        self.process.send(signal.SIGCONT)

    async def give_way(self, post: Post) -> None:
        """Send SIGTERM; it is started again as `post` says. Returns when that is ready."""
        before, self.post, self._expected = self.process, post, True
        before.send(signal.SIGTERM)
        await before.exit_code(_STOP_SECONDS)
        while self.process is before:  # noqa: ASYNC110 - `keep` starts it
            await asyncio.sleep(_PAUSE_SECONDS / 10)
        await self._service.ready(self.process)

    async def stop(self) -> int:
        """Send SIGTERM; return the exit code. It is not started again."""
        self._stopping = True
        if self.alive:
            self.process.send(signal.SIGTERM)
        return await self.process.exit_code(_STOP_SECONDS)


class Crew:
    """All of them."""

    def __init__(self, service: Service, posts: list[Post]) -> None:
        self.members = [Member(service, post) for post in posts]
        self._service = service
        self._keeping: list[asyncio.Task[None]] = []
        self._turns = count()

    async def start(self) -> None:
        """Start all, and wait until they are ready.

        One after another: together they would starve each other on a small machine.
        """
        for member in self.members:
            await member.begin()
            await self._service.ready(member.process)
        self._keeping = [
            asyncio.create_task(member.keep(), name=f"keep-{member.post.role}")
            for member in self.members
        ]

    def some(self, rng: random.Random, *roles: str) -> Member:
        """Return one that lives, of these roles."""
        return rng.choice(
            [member for member in self.members if member.post.role in roles and member.alive]
        )

    @property
    def api_url(self) -> str:
        return self.url_of("api")

    @property
    def webhook_url(self) -> str:
        """URL to which carriers push: each `ingress` in turn, as a load balancer does; the
        `api` where there is none.
        """
        ingresses = [member for member in self.members if member.post.role == "ingress"]
        return (
            ingresses[next(self._turns) % len(ingresses)].process.url if ingresses else self.api_url
        )

    def url_of(self, role: str) -> str:
        """Return the URL of the first one with this role."""
        return next(member.process.url for member in self.members if member.post.role == role)

    @property
    def deaths(self) -> list[str]:
        """All that nobody ordered."""
        return [death for member in self.members for death in member.deaths]

    @property
    def starts(self) -> int:
        return sum(member.starts for member in self.members)

    async def stop(self) -> list[int]:
        """Tell all to go, those that were just started again as soon as they listen to signals;
        return their exit codes.
        """
        await asyncio.gather(*(self._service.ready(member.process) for member in self.members))
        codes = await asyncio.gather(*(member.stop() for member in self.members))
        await self.abandon()
        return list(codes)

    async def halt(self) -> None:
        """Tell all to go; `start` brings them back."""
        await asyncio.gather(*(member.stop() for member in self.members))
        await self.abandon()

    async def abandon(self) -> None:
        """Start nobody again from now on.

        For a story that fails: its processes would outlive it.
        """
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
