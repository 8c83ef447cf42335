"""The text of `/metrics`: rendered at most once a second for any number of callers.

The metrics of several processes become one text; the label `role` names the process.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

MADE_EVERY_SECONDS: Final = 1.0


class Exposition:
    def __init__(
        self, make: Callable[[], Awaitable[bytes]], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._make = make
        self._now = now
        self._made_at = float("-inf")
        self._text = b""
        self._making = asyncio.Lock()

    async def text(self) -> bytes:
        """Return the last text if it is recent; callers share a rendering in progress."""
        # the lock makes callers wait for the rendering under way, and then share it
        async with self._making:
            if self._now() >= self._made_at + MADE_EVERY_SECONDS:
                self._text = await self._make()
                self._made_at = self._now()
            return self._text


def merged(texts: Mapping[str, bytes]) -> bytes:
    """Merge the texts of several processes, by role.

    The samples of a metric stand together, as the format demands.
    """
    families: dict[bytes, list[bytes]] = {}
    for role, text in texts.items():
        label = b'role="%b"' % role.encode()
        samples: list[bytes] = []
        for line in text.splitlines():
            if line.startswith((b"# HELP ", b"# TYPE ")):
                family = line.split(b" ", 3)[2]
                if family not in families:
                    families[family] = []
                samples = families[family]
                # several processes print the same HELP and TYPE: the format allows each once
                if line not in samples[:2]:
                    samples.insert(min(len(samples), int(line.startswith(b"# TYPE "))), line)
            elif line and not line.startswith(b"#"):
                samples.append(_labelled(line, label))
    return b"".join(b"%b\n" % line for samples in families.values() for line in samples)


def _labelled(sample: bytes, label: bytes) -> bytes:
    name, brace, rest = sample.partition(b"{")
    if brace:
        return b"%b{%b,%b" % (name, label, rest)
    name, _, value = sample.partition(b" ")
    return b"%b{%b} %b" % (name, label, value)
