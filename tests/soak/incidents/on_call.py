"""Someone on call, who has a terminal and the runbook: runs the commands of its pages as they
stand there, and no other.

A word in capitals (ID, PID, NAME) is what the person reads off the answers before; all else
is the page's own text.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[3] / "docs"
RUNBOOK: Final = DOCS / "runbook"
_BLOCK: Final = re.compile(r"^ *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SECTION: Final = re.compile(r"^## (.*)$", re.MULTILINE)
_COMMAND_SECONDS: Final = 300.0


def commands(page: Path, section: str | None = None) -> list[str]:
    """Return the lines of its blocks, in order; of one section if that is named."""
    text = page.read_text("utf-8")
    if section is not None:
        parts = _SECTION.split(text)
        text = dict(zip(parts[1::2], parts[2::2], strict=True))[section]
    return [
        line.strip()
        for block in _BLOCK.findall(text)
        for line in block.splitlines()
        if line.strip()
    ]


@dataclass(slots=True)
class OnCall:
    """A terminal with the service's settings.

    `urls`: of the database, for psql alone. `ran`: what changed something, as pages have it.
    """

    environment: Mapping[str, str]
    urls: Mapping[str, str]
    folder: Path
    ran: list[str] = field(default_factory=list)
    _started: list[asyncio.subprocess.Process] = field(default_factory=list)

    async def look(self, page: str, **known: str) -> str:
        """Run everything under "Look" of a page; return what it printed.

        A command that takes what is not known yet is left out.
        """
        answers = []
        for line in commands(RUNBOOK / f"{page}.md", "Look"):
            command = _filled(line, known)
            if not _asks(command):
                # `status` and `doctor` end with 1 where they find something
                answers.append(f"$ {command}\n{(await self._run(command))[1]}")
        return "\n".join(answers)

    async def do(self, page: str, *parts: str, **known: str) -> str:
        """Run the one command of the page that has these parts; it must go well."""
        line = _one(page, parts)
        command = _filled(line, known)
        assert not _asks(command), f"{page}: nobody knows what to write into {command}"
        exit_code, printed = await self._run(command)
        assert exit_code == 0, f"{page}: {command}: {printed}"
        self.ran.append(line)
        return printed

    async def start(self, page: str, command: str, *more: str) -> None:
        """Start what the page says, and leave it running.

        `more`: arguments of this machine, such as a port that is free.
        """
        line = _one(page, (command,))
        with (self.folder / "started.log").open("ab") as log:
            text = " ".join(["exec", line, *more])
            started = await asyncio.create_subprocess_exec(
                "bash", "-c", text, env=dict(self.environment), stdout=log, stderr=log
            )
        self._started.append(started)
        self.ran.append(line)

    async def close(self) -> None:
        """End what was started."""
        for process in self._started:
            if process.returncode is None:
                process.terminate()
            await process.wait()

    async def _run(self, command: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", command),
            env={**self.environment, **(self.urls if command.startswith("psql ") else {})},
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(_COMMAND_SECONDS):
            printed, _ = await process.communicate()
        return process.returncode or 0, printed.decode()


def _one(page: str, parts: Sequence[str]) -> str:
    file = DOCS / page if page.endswith(".md") else RUNBOOK / f"{page}.md"
    lines = list(dict.fromkeys(line.partition("  #")[0].strip() for line in commands(file)))
    exact = [line for line in lines if line.removeprefix("statesvc ") in parts]
    found = exact or [line for line in lines if all(part in line for part in parts)]
    assert len(found) == 1, f"{page} has {found} for {parts}"
    return found[0]


def _asks(command: str) -> bool:
    return re.search(r"\b(ID|PID|NAME|FILE)\b", command) is not None


def _filled(command: str, known: Mapping[str, str]) -> str:
    for word, value in known.items():
        command = re.sub(
            rf"\b{word}\b" if word.isupper() else re.escape(word),
            lambda _found, value=value: value,  # type: ignore[misc]
            command,
        )
    return command
