"""Presentation of a command's results: colour on a terminal, further columns, ages for times."""

import sys
from contextvars import ContextVar
from typing import Final, NamedTuple

from statesvc.telemetry.colour import Colour, coloured, shows_colour


class Presentation(NamedTuple):
    """Options `-o wide` and `--ages`."""

    wide: bool = False
    ages: bool = False


_PRESENTATION: Final[ContextVar[Presentation]] = ContextVar("presentation")


def present(chosen: Presentation) -> None:
    """Set the presentation of the running command's results."""
    _PRESENTATION.set(chosen)


def presentation() -> Presentation:
    """Return the presentation of the running command."""
    return _PRESENTATION.get(Presentation())


def paint(text: str, colour: Colour | None) -> str:
    """Return the text in this colour where standard output shows colours."""
    return coloured(text, colour) if shows_colour(sys.stdout) else text


class Painted(NamedTuple):
    text: str
    colour: Colour | None
