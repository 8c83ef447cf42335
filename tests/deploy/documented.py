"""The commands that the pages show: fenced blocks of `sh`, and commands of ours within a sentence.

A block is run by a test, as it stands, unless the line before it says why not: `<!-- not run: reason -->`.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "clients/python/README.md"),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
)
BLOCK: Final = re.compile(r"(?:^ *<!-- not run: (?P<reason>[^\n]+) -->\n)?^ *```sh\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)
INLINE: Final = re.compile(r"`(statesvc [a-z][^`]*)`")
FENCED: Final = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of `sh`; `reason`: why it is not run, empty where it is."""

    page: str
    text: str
    reason: str

    def commands(self) -> list[str]:
        """Its commands, without comments; one may take several lines, by a backslash or within quotes."""
        found, begun = [], ""
        for line in self.text.splitlines():
            begun += line.strip() + "\n"
            if not line.endswith("\\") and _is_whole(begun):
                found.append(begun.strip())
                begun = ""
        return [command for command in found if shlex.split(command, comments=True)]


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def blocks(page: str) -> list[Block]:
    """The page's blocks, in their order."""
    return [Block(page, match["text"], match["reason"] or "") for match in BLOCK.finditer((ROOT / page).read_text("utf-8"))]


def within_sentences(page: str) -> Iterator[str]:
    """Commands of ours, up to what they are piped into."""
    for found in INLINE.findall(FENCED.sub("", (ROOT / page).read_text("utf-8"))):
        yield found.partition(" | ")[0]
