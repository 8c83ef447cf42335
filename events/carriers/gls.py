"""GLS: answers of the ECI track and trace API, and of its public tracking. One answer may hold parcels and errors side by side.

A code is `GROUP.DETAIL`. One that is not known is read by the sentence of GLS's own list that accompanies it, or by its group where that
says enough, as hub scans do (`by_category`). A parcel's status is a rollup and speaks only for a parcel without events. The public tracking
prints no codes, and local times: a sentence that is not known is read by the state of the parcel where it is the newest.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers.carrier import Carrier, ShipperChoice
from events.errors import Cause, UnreadableMessageError
from events.event import Raw, Reading
from events.parsing.formats import ISO
from events.parsing.json import read_json
from events.parsing.lists import JsonObject, as_list, child, objects_at
from events.parsing.meanings import UNMAPPED, Meaning, finest, meanings
from events.parsing.places import country_code, place
from events.parsing.rejections import Rejections, normalizer
from events.parsing.scan import Scan, reading_of
from events.parsing.text import collapse, text
from events.parsing.times import Clock
from events.vocabulary import Kind

CODES: Final = meanings("gls_codes.csv")
"""(level, code): of an `event`, of the `group` before its dot, of a parcel's `status`; an English `text` in lower case."""

_APOSTROPHES: Final = str.maketrans({"\u2019": "'", "\u00b4": "'"})

_PUBLIC: Final = "tuStatus"

CLOCK: Final = Clock(formats=ISO, default_zone="Europe/Berlin")


@normalizer
def normalize(body: bytes, received_at: datetime, rejections: Rejections) -> Iterator[Reading]:
    """Yield the events of one answer; parcels with errors say nothing."""
    answer = read_json(body)
    if type(answer) is dict and _PUBLIC in answer:
        for index, parcel in objects_at(answer, _PUBLIC, "", rejections):
            yield from _public(parcel, f"/{_PUBLIC}/{index}", received_at, rejections)
        return
    for where, parcel in _parcels(answer, rejections):
        number = text(parcel.get("unitno")) or text(parcel.get("requested"))
        for pointer, event in _events(parcel, where, rejections):
            raw, words = Raw(code=text(event.get("code"))), text(event.get("description"))
            at = place(
                city=event.get("city"),
                postal_code=event.get("postalCode"),
                country=event.get("country"),
            )
            yield from reading_of(
                Scan(
                    where=pointer,
                    raw=raw,
                    meaning=_meaning(raw, words or ""),
                    time=CLOCK.read(text(event.get("eventDateTime")), at, received_at=received_at),
                    place=at,
                    description=words,
                ),
                number,
                rejections,
            )


def _public(
    parcel: JsonObject, where: str, received_at: datetime, rejections: Rejections
) -> Iterator[Reading]:
    number, state = text(parcel.get("tuNo")), text(child(parcel, "progressBar").get("statusInfo"))
    history = objects_at(parcel, "history", where, rejections, required=state is None)
    newest: str | None = max((_printed(event) or "" for _, event in history), default="")
    for index, event in history:
        words, printed, address = (
            text(event.get("evtDscr")),
            _printed(event),
            child(event, "address"),
        )
        at = place(
            city=address.get("city"),
            postal_code=address.get("postalCode"),
            country=country_code(address.get("countryName")),
        )
        known = CODES.get(("text", _sentence(words or "")))
        of_parcel = CODES.get(("status", state or ""), UNMAPPED) if printed == newest else UNMAPPED
        yield from reading_of(
            Scan(
                where=f"{where}/history/{index}",
                raw=Raw(),
                meaning=known
                or (of_parcel.of_category() if of_parcel.kind is Kind.SCAN else UNMAPPED),
                time=CLOCK.read(printed, at, received_at=received_at),
                place=at,
                description=words,
            ),
            number,
            rejections,
        )
        newest = newest if printed != newest else None
    if not history and state is not None and ("status", state) in CODES:
        time = CLOCK.read(None, received_at=received_at)
        scan = Scan(
            where=f"{where}/progressBar",
            raw=Raw(code=state),
            meaning=CODES[("status", state)],
            time=time,
        )
        yield from reading_of(scan, number, rejections)


def _printed(event: JsonObject) -> str | None:
    return (
        " ".join(part for part in (text(event.get("date")), text(event.get("time"))) if part)
        or None
    )


def _parcels(body: object, rejections: Rejections) -> Iterator[tuple[str, JsonObject]]:
    if body in ({}, []):
        return
    if type(body) is dict and "unitno" in body:
        yield "", body
    elif type(body) is dict and "parcels" in body:
        yield from (
            (f"/parcels/{index}", parcel)
            for index, parcel in objects_at(body, "parcels", "", rejections)
        )
    elif not (
        type(body) is dict
        and {"errorCode", "errors", "error", "message", "exceptionText", "lastError"} & body.keys()
    ):
        raise UnreadableMessageError(Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of GLS")


def _events(
    parcel: JsonObject, where: str, rejections: Rejections
) -> Iterator[tuple[str, JsonObject]]:
    status = text(parcel.get("status"))
    events = objects_at(parcel, "events", where, rejections, required=status is None)
    yield from ((f"{where}/events/{index}", event) for index, event in events)
    if not as_list(parcel.get("events")) and status is not None and ("status", status) in CODES:
        yield f"{where}/status", {"code": status, "eventDateTime": parcel.get("statusDateTime")}


def _reread(raw: Raw) -> Meaning | None:
    """Read a known code; an unknown one may be read by the words next to it."""
    code = raw.code or ""
    return CODES.get(("event", code)) or CODES.get(("status", code))


def _sentence(words: str) -> str:
    return collapse(words).translate(_APOSTROPHES).casefold().rstrip(".")


def _meaning(raw: Raw, words: str) -> Meaning:
    sentence = _sentence(words)
    group = (raw.code or "").partition(".")[0]
    return finest(
        (raw.code, _reread(raw)),
        (sentence, CODES.get(("text", sentence))),
        (group, CODES.get(("group", group))),
    )


CARRIER: Final = Carrier(
    carrier_id="gls",
    name="GLS",
    number_fields=("unitno|requested", "tuNo"),
    normalizers={"1": normalize},
    formats=("ECI track and trace JSON", "Public tracking JSON"),
    reread=_reread,
    authentication=(ShipperChoice(),),
)
