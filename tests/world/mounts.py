"""Volumes that are really mounted: where this is not allowed, the test is skipped."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted_tmpfs(folder: Path, *, size: str = "64m") -> Iterator[Callable[[str], None]]:
    """Mount an empty volume over the folder, for the time of the block; yield what mounts it anew
    with other options (`ro`, `rw`).
    """
    if os.geteuid() != 0:
        pytest.skip("mounting takes root")
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode().strip()}")

    def remount(options: str) -> None:
        subprocess.run(
            ["mount", "-o", f"remount,{options}", str(folder)], capture_output=True, check=True
        )

    try:
        yield remount
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=True)
