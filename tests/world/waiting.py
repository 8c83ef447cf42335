"""Waiting for a state that another task or process brings about."""

import asyncio
from collections.abc import Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any


async def until(
    condition: Callable[..., Any], seconds: float = 30, *, pause_seconds: float = 0.02
) -> Any:
    """Ask again and again, since nothing says when it is so; return what it answered then."""
    async with asyncio.timeout(seconds):
        # another task or process decides
        while not (held := await found if isawaitable(found := condition()) else found):  # noqa: ASYNC110
            await asyncio.sleep(pause_seconds)
    return held


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, also as a zombie that nobody reaps."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
