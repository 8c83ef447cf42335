"""The embedded server's settings: what depends on the machine, and who has the last word."""

import os
from pathlib import Path

import pytest

from statesvc.database import embedded_config
from statesvc.database.embedded_config import configuration

GIB = 1024**3


def buffers(monkeypatch: pytest.MonkeyPatch, folder: Path, *, memory: int, limit: str | None) -> str:
    """`shared_buffers` on a machine with so much memory, in a container with that limit (None: no control groups)."""
    sizes = {"SC_PHYS_PAGES": memory // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    file = folder / "memory.max"
    if limit is not None:
        file.write_text(f"{limit}\n")
    monkeypatch.setattr(embedded_config, "_MEMORY_LIMIT", file)
    lines = configuration(socket_dir=folder, tcp_port=0, overrides={}).splitlines()
    (found,) = [line for line in lines if line.startswith("shared_buffers")]
    return found.partition(" = ")[2].strip("'")


@pytest.mark.parametrize(
    ("memory", "limit", "expected"),
    [
        (2 * GIB, None, "512MB"),
        (2 * GIB, "max", "512MB"),
        (64 * GIB, "max", "1024MB"),
        (64 * GIB, str(GIB), "256MB"),
        (64 * GIB, str(GIB // 4), "128MB"),
        (GIB // 4, str(64 * GIB), "128MB"),
    ],
    ids=["a quarter", "no limit", "enough", "container", "least", "the machine's is less"],
)
def test_buffers_follow_the_memory_of_machine_or_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, memory: int, limit: str | None, expected: str
) -> None:
    assert buffers(monkeypatch, tmp_path, memory=memory, limit=limit) == expected


def test_an_override_wins_and_quotes_are_kept() -> None:
    text = configuration(socket_dir=Path("/run/it's here"), tcp_port=5433, overrides={"fsync": "off"})
    assert "fsync = 'off'" in text.splitlines()
    assert "unix_socket_directories = '/run/it''s here'" in text.splitlines()
    assert "listen_addresses = '127.0.0.1'" in text.splitlines()
