"""Colours of a terminal, and when to show them."""

import os
from enum import StrEnum
from typing import Protocol


class Colour(StrEnum):
    """Select Graphic Rendition codes."""

    BOLD = "1"
    DIM = "2"
    RED = "1;31"
    GREEN = "32"
    YELLOW = "33"


class Terminal(Protocol):
    """A stream that may be one."""

    def isatty(self) -> bool:
        """Return whether it is a terminal."""


def shows_colour(stream: Terminal) -> bool:
    """Return whether the stream is a colour terminal and NO_COLOR is unset (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: Colour | None) -> str:
    return text if colour is None or not text else f"\x1b[{colour}m{text}\x1b[0m"
