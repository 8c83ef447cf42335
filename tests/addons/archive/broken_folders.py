"""What becomes of an archive's folder; `put_back` undoes it."""

import shutil
from collections.abc import Callable
from pathlib import Path

from statesvc.addons.archive.archive_identity import MARKER

Break = Callable[[Path], None]


def away(folder: Path) -> Path:
    return folder.with_name("away")


def absent(folder: Path) -> None:
    folder.rename(away(folder))


def a_file(folder: Path) -> None:
    absent(folder)
    folder.write_text("")


def empty(folder: Path) -> None:
    absent(folder)
    folder.mkdir()


def of_another_installation(folder: Path) -> None:
    empty(folder)
    (folder / f"{MARKER}{'0' * 16}").write_text("")
    (folder / f"bodies-2026-03-01-d4c3b2a1-{'1' * 16}.ssb").write_text("theirs")


def without(suffix: str) -> Break:
    def break_it(folder: Path) -> None:
        shutil.copytree(folder, away(folder))
        next(path for path in sorted(folder.iterdir()) if path.name.endswith(suffix)).unlink()

    return break_it


def cut_short(suffix: str) -> Break:
    def break_it(folder: Path) -> None:
        shutil.copytree(folder, away(folder))
        path = next(path for path in sorted(folder.iterdir()) if path.name.endswith(suffix))
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-1])

    return break_it


def put_back(folder: Path) -> None:
    shutil.rmtree(folder) if folder.is_dir() else folder.unlink(missing_ok=True)
    away(folder).rename(folder)
