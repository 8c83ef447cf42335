"""The commands that the pages show: fenced blocks of `sh`, and commands of ours within a sentence.

A block is run by a test, as it stands, unless the line before it says why not:
`<!-- not run: reason -->`.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    *(
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "clients/python/README.md",
        "clients/typescript/README.md",
    ),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
)
BLOCK: Final = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>[^\n]+) -->\n)?^ *```sh\n(?P<text>.*?)^ *```",
    re.MULTILINE | re.DOTALL,
)
INLINE: Final = re.compile(r"`(statesvc [a-z][^`]*)`")
COMMAND: Final = re.compile(r" *(?:statesvc|curl|make|pip|python3?|docker|psql) ")
FENCED: Final = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of `sh`; `reason`: why it is not run, empty where it is."""

    page: str
    text: str
    reason: str

    def commands(self) -> list[str]:
        """Return its commands, without comments; one may take several lines, by a
        backslash or within quotes.
        """
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
    """Return the page's blocks, in their order."""
    return [
        Block(page, match["text"], match["reason"] or "")
        for match in BLOCK.finditer((ROOT / page).read_text("utf-8"))
    ]


def commands_not_run(page: str) -> Iterator[str]:
    """Yield commands of ours within sentences and in the blocks that are not run, up to
    what they are piped into.
    """
    in_sentences = INLINE.findall(FENCED.sub("", (ROOT / page).read_text("utf-8")))
    in_blocks = (
        command
        for block in blocks(page)
        if block.reason
        for command in block.commands()
        if command.startswith("statesvc ")
    )
    for found in (*in_sentences, *in_blocks):
        yield re.split(r" (?:\||&&|#) ", found)[0]


def unmarked(page: str) -> list[str]:
    """Return lines that look like commands in blocks that name no language: nothing would run
    them.
    """
    without_language = re.findall(
        r"^ *```\n(.*?)^ *```",
        _balanced((ROOT / page).read_text("utf-8")),
        re.MULTILINE | re.DOTALL,
    )
    return [line for text in without_language for line in text.splitlines() if COMMAND.match(line)]


def _balanced(text: str) -> str:
    """Return the text without the blocks that name a language."""
    return re.sub(r"^ *```\w.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
