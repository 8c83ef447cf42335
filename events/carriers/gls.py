"""GLS: answers of the ECI track and trace API, and of its public tracking.

An answer may hold parcels and errors side by side. A code is `GROUP.DETAIL`. An unknown code is
read by the sentence of GLS's own list that accompanies it, or by its group where that is definite,
as for hub scans (`by_category`). A parcel's status is a rollup and counts only for a parcel without
events. The public tracking prints no codes, and local times: an unknown sentence is read by the
state of the parcel where it is the newest.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from events.carriers import kit

# (level, code): of an `event`, of the `group` before its dot, of a parcel's `status`; an English
# `text` in lower case.
CODES: Final = kit.meanings("gls_codes.csv")

# GLS prints the same sentence with different apostrophes
_APOSTROPHES: Final = str.maketrans({"\u2019": "'", "\u00b4": "'"})

_PUBLIC: Final = "tuStatus"

CLOCK: Final = kit.Clock(formats=kit.ISO, default_zone="Europe/Berlin")


_STATUSES: Final = "ParcelStatusList"
_NET_DATE: Final = re.compile(r"/Date\((\d{1,14})(?:[+-]\d{4})?\)/", re.ASCII)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    """Yield the events of an answer; parcels with errors have none."""
    answer = kit.read_json(body)
    # before the API's: the public tracking has neither `parcels` nor codes
    if type(answer) is dict and _PUBLIC in answer:
        for index, parcel in kit.objects_at(answer, _PUBLIC, "", rejections):
            yield from _public(parcel, f"/{_PUBLIC}/{index}", received_at, rejections)
        return
    if type(answer) is dict and _STATUSES in answer:
        yield from kit.readings_of(
            _statuses(answer, received_at, rejections),
            kit.text(answer.get("ParcelNumber")),
            rejections,
        )
        return
    for where, parcel in _parcels(answer, rejections):
        # the requested number may be a reference: GLS's own is the one that others print
        number = kit.text(parcel.get("unitno")) or kit.text(parcel.get("requested"))
        for pointer, event in _events(parcel, where, rejections):
            raw, words = (
                kit.Raw(code=kit.text(event.get("code"))),
                kit.text(event.get("description")),
            )
            at = kit.place(
                city=event.get("city"),
                postal_code=event.get("postalCode"),
                country=event.get("country"),
            )
            yield from kit.reading_of(
                kit.Scan(
                    where=pointer,
                    raw=raw,
                    meaning=_meaning(raw, words or ""),
                    time=CLOCK.read(
                        kit.text(event.get("eventDateTime")), at, received_at=received_at
                    ),
                    place=at,
                    description=words,
                ),
                number,
                rejections,
            )


def _statuses(
    parcel: kit.JsonObject, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Scan]:
    """Yield the statuses of MyGLS (HU, RO, CZ, SK, HR, SI, RS), with times in .NET's form."""
    for index, status in kit.objects_at(parcel, _STATUSES, "", rejections):
        raw = kit.Raw(code=kit.text(status.get("StatusCode")))
        printed = _NET_DATE.fullmatch(kit.text(status.get("StatusDate")) or "")
        yield kit.Scan(
            where=f"/{_STATUSES}/{index}",
            raw=raw,
            meaning=CODES.get(("mygls", raw.code or ""), kit.UNMAPPED),
            time=kit.read_epoch(int(printed[1]), milliseconds=True, received_at=received_at)
            if printed
            else None,
            place=kit.place(
                city=status.get("DepotCity"), facility=kit.text(status.get("DepotNumber"))
            ),
            description=kit.text(status.get("StatusDescription")),
        )


def _public(
    parcel: kit.JsonObject, where: str, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    number, state = (
        kit.text(parcel.get("tuNo")),
        kit.text(kit.child(parcel, "progressBar").get("statusInfo")),
    )
    history = kit.objects_at(parcel, "history", where, rejections, required=state is None)
    # by the printed time, which sorts as text: the list has no promised order
    newest: str | None = max((_printed(event) or "" for _, event in history), default="")
    for index, event in history:
        words, printed, address = (
            kit.text(event.get("evtDscr")),
            _printed(event),
            kit.child(event, "address"),
        )
        at = kit.place(
            city=address.get("city"),
            postal_code=address.get("postalCode"),
            country=kit.country_code(address.get("countryName")),
        )
        known = CODES.get(("text", _sentence(words or "")))
        of_parcel = (
            CODES.get(("status", state or ""), kit.UNMAPPED) if printed == newest else kit.UNMAPPED
        )
        yield from kit.reading_of(
            kit.Scan(
                where=f"{where}/history/{index}",
                raw=kit.Raw(),
                meaning=known
                or (of_parcel.of_category() if of_parcel.kind is kit.Kind.SCAN else kit.UNMAPPED),
                time=CLOCK.read(printed, at, received_at=received_at),
                place=at,
                description=words,
            ),
            number,
            rejections,
        )
        # only the first of several at the same time: the state is one event's
        newest = newest if printed != newest else None
    if not history and state is not None and ("status", state) in CODES:
        time = CLOCK.read(None, received_at=received_at)
        scan = kit.Scan(
            where=f"{where}/progressBar",
            raw=kit.Raw(code=state),
            meaning=CODES[("status", state)],
            time=time,
        )
        yield from kit.reading_of(scan, number, rejections)


def _printed(event: kit.JsonObject) -> str | None:
    return (
        " ".join(
            part for part in (kit.text(event.get("date")), kit.text(event.get("time"))) if part
        )
        or None
    )


def _parcels(body: object, rejections: kit.Rejections) -> Iterator[tuple[str, kit.JsonObject]]:
    if type(body) is dict and "unitno" in body:
        yield "", body
    elif type(body) is dict and "parcels" in body:
        yield from (
            (f"/parcels/{index}", parcel)
            for index, parcel in kit.objects_at(body, "parcels", "", rejections)
        )
    elif not (
        type(body) is dict
        and {"errorCode", "errors", "error", "message", "exceptionText", "lastError"} & body.keys()
    ):
        raise kit.UnreadableMessageError(
            kit.Cause.UNKNOWN_FORMAT, "JSON, but no tracking answer of GLS"
        )


def _events(
    parcel: kit.JsonObject, where: str, rejections: kit.Rejections
) -> Iterator[tuple[str, kit.JsonObject]]:
    status = kit.text(parcel.get("status"))
    events = kit.objects_at(parcel, "events", where, rejections, required=status is None)
    yield from ((f"{where}/events/{index}", event) for index, event in events)
    if not kit.as_list(parcel.get("events")) and status is not None and ("status", status) in CODES:
        yield f"{where}/status", {"code": status, "eventDateTime": parcel.get("statusDateTime")}


def _reread(raw: kit.Raw) -> kit.Meaning | None:
    """Read a known code; an unknown code may be read by the words next to it."""
    code = raw.code or ""
    return next(
        (
            known
            for level in ("event", "status", "mygls")
            if (known := CODES.get((level, code))) is not None
        ),
        None,
    )


def _sentence(words: str) -> str:
    return kit.collapse(words).translate(_APOSTROPHES).casefold().rstrip(".")


def _meaning(raw: kit.Raw, words: str) -> kit.Meaning:
    sentence = _sentence(words)
    group = (raw.code or "").partition(".")[0]
    return kit.finest(
        (raw.code, _reread(raw)),
        # the sentence before the group: it is from GLS's own list, the group covers several
        (sentence, CODES.get(("text", sentence))),
        (group, CODES.get(("group", group))),
    )


CARRIER: Final = kit.Carrier(
    carrier_id="gls",
    name="GLS",
    number_fields=("unitno|requested", "tuNo", "ParcelNumber"),
    normalizers={"1": normalize},
    formats=("ECI track and trace JSON", "Public tracking JSON", "MyGLS statuses JSON"),
    reread=_reread,
    authentication=(kit.ShipperChoice(),),
)
