"""Files that the Dockerfile copies from the tree."""

import re
import shutil
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "deploy" / "docker" / "Dockerfile"


def copied() -> list[str]:
    """Return the files and folders that its first stage names."""
    first_stage = DOCKERFILE.read_text("utf-8").split("\nFROM ")[1]
    return [
        name
        for line in re.findall(r"^COPY (.+)$", first_stage, re.MULTILINE)
        for name in line.split()[:-1]
    ]


def copy_to(folder: Path) -> None:
    """Copy as a build does."""
    for name in copied():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
