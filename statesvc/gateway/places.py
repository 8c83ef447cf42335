"""A place in each log, as one text: `north=1.57,south=1.8`. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from statesvc.cells.directory import CELL_NAME
from statesvc.gateway.cell_client import CellAnswer
from statesvc.http.problem import Code, Problem
from statesvc.log.cursor import CURSOR_PATTERN

NOW: Final = "now"
"""The place in the log of a cell that did not answer since the client came without an id."""
_GONE: Final = 410
_NAME: Final = CELL_NAME.strip("^$")
_CURSOR: Final = CURSOR_PATTERN.strip("^$")
PLACES_PATTERN: Final = f"^({_CURSOR}|{_NAME}=({_CURSOR}|{NOW})(,{_NAME}=({_CURSOR}|{NOW}))*)$"
"""What a call over cells takes as a place: one in each log, or, where it is of one cell alone, one in that log."""
_PLACE: Final = re.compile(f"{_NAME}={_CURSOR}$")
_PLACE_OR_NOW: Final = re.compile(f"{_NAME}=(?:{_CURSOR}|{NOW})$")


def written_places(places: Mapping[str, str | None]) -> str:
    """`north=1.57,south=1.8`; None: `now`."""
    return ",".join(f"{name}={place or NOW}" for name, place in places.items())


def read_places(text: str, *, or_now: bool = False) -> dict[str, str]:
    """What `written_places` wrote. Raises the problem `invalid_cursor`."""
    parts = text.split(",") if text else []
    if not all(map((_PLACE_OR_NOW if or_now else _PLACE).fullmatch, parts)):
        what = "the place is the `cursor` of a page of the gateway, or the `id` of an event of its stream"
        raise Problem(Code.INVALID_CURSOR, f"{what}: a place in each cell, as in north=1.57,south=1.8")
    return dict(part.split("=") for part in parts)


def lost_place(name: str, refusal: CellAnswer, places: Mapping[str, str | None]) -> CellAnswer:
    """A cell's refusal; where its log was restored, with where to go on in it, and the places in the others as they were."""
    if refusal.status != _GONE:
        return refusal
    go_on = {**places, name: refusal.document["go_on_after"]}
    document = {**refusal.document, "cell": name, "go_on_after": written_places(go_on)}
    return CellAnswer(status=refusal.status, document=document, headers=refusal.headers)
