"""A disk whose machine can lose its power: an ext4 on a loop device, of which the kernel can be
made to forget what was not flushed.

What the device was given stays, and pages are written whole or not at all. Needs root, and from
Debian: e2fsprogs, mount.
"""

import asyncio
import fcntl
import os
import struct
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.processes import until_false
from tests.world import postgres
from tests.world.programs import required

_BYTES: Final = 8 * 1024**3
"""Of a file with holes: it takes what is written."""
_SHUTDOWN: Final = 0x8004587D
"""FS_IOC_SHUTDOWN of Linux, and its flag that not even the journal is flushed."""
_NO_FLUSH: Final = struct.pack("I", 2)
_OPTIONS: Final = "commit=600"
"""Nothing is flushed by the way: the journal waits ten minutes, unless somebody asks."""
_RELEASED_SECONDS: Final = 30


class Disk:
    """Mounted at `folder`."""

    def __init__(self) -> None:
        # this name, so that a later run ends the server should this one be killed
        self.folder = Path(tempfile.mkdtemp(prefix=f"{postgres.FOLDER_PREFIX}{os.getpid()}-soak-"))
        with tempfile.NamedTemporaryFile(prefix=self.folder.name) as image:
            image.truncate(_BYTES)
            _run("mkfs.ext4", "-q", "-F", image.name)
            self._device = _run("losetup", "--find", "--show", image.name).strip()

    def mount(self) -> None:
        _run("mount", "-o", _OPTIONS, self._device, str(self.folder))

    async def lose_power(self) -> None:
        """Forget what was not flushed. Whoever has a file open there has been killed."""
        root = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(root, _SHUTDOWN, _NO_FLUSH)
        finally:
            os.close(root)
        await self.unmount()
        self.mount()

    async def unmount(self) -> None:
        """Return once nobody has a file open there."""

        async def is_held() -> bool:
            ended = await asyncio.create_subprocess_exec(
                "umount", self.folder, stderr=subprocess.DEVNULL
            )
            return await ended.wait() != 0

        async with asyncio.timeout(_RELEASED_SECONDS):
            await until_false(is_held)

    def remove(self) -> None:
        _run("losetup", "--detach", self._device)
        self.folder.rmdir()


@asynccontextmanager
async def made_disk() -> AsyncIterator[Disk]:
    """Make a disk for the time of the block."""
    for program, package in (("mkfs.ext4", "e2fsprogs"), ("losetup", "mount"), ("mount", "mount")):
        required(program, package)
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    disk = Disk()
    try:
        disk.mount()
        try:
            yield disk
        finally:
            await disk.unmount()
    finally:
        disk.remove()


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
