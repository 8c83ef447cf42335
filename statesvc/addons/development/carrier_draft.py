"""`statesvc carriers draft CARRIER FILE...`: draft a carrier package with its test from samples.

A person corrects it. The list of events is found by its dated members, each field by its name and
values, statuses by phrases. A guess with equal alternatives, or without evidence, is marked
`doubtful`.
"""

import argparse
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from events.carriers import CARRIERS
from events.errors import UnreadableMessageError
from events.parsing.flat_events import KEYS, LIST, flat_events, read_value, scalars
from events.parsing.formats import ISO, TimeFormats
from events.parsing.rejections import Rejections
from events.parsing.silence import is_date, squashed
from events.text_proposals import proposed
from statesvc.addons.development.package_texts import MODULE, PROJECT, TEST
from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_line

# Names of fields as `squashed`, the likeliest first.
_NAMES: Final = {
    "time": (
        r"(event|scan|occur|action|status|track|update)\w*(date|time|stamp)",
        r"\A(date|time|timestamp|datetime|at|ts)\Z",
        r"date|time|stamp|at\Z",
        "",
    ),
    "clock": (r"time|hour|clock",),
    "code": (
        r"(event|scan|status|state|track|activity|action|link|checkpoint)\w*code|\Acode\Z",
        r"(status|state)(id|key)\Z|\A(status|state)\Z",
        r"status|state|event|phase|type",
    ),
    "text": (
        r"(status|event|scan|track)\w*(desc|text|name|content|message|detail)",
        r"desc|text|message|content|context|remark|detail|note|name\Z|status\Z",
    ),
    "number": (
        r"\{\}\Z|track\w*(num|no|id|ref|code)|waybill|awb|barcode|consignment",
        r"(shipment|parcel|package|delivery)\w*(num|no|id|code|ref)|\Anu\Z|label",
        r"order\w*(num|no|id|code)|reference",
        r"num|no\Z|id\Z",
    ),
    "city": (r"city|town", r"location|place|office|facility|hub|depot|site"),
    "country": (r"country",),
    "postal_code": (r"zip|postal|postcode",),
}
# Names of fields with another meaning.
_OTHERS: Final = {
    "time": r"estimat|expect|eta\Z|promis|creat|schedul|plan|commit|due|birth|request|generat",
    "code": r"country|postal|zip|error|currency|service|product|location|city|reason|carrier|courier|topic",
    "text": r"receiver|consignee|sender|shipper|signed|city|country|location|office|facility|carrier|courier|product",
    "number": r"phone|mobile|event|user|shopid|price|weight|account|version|client|customer|partner",
    "city": r"url|code|id\Z|lat|lng",
}
_CONTAINER: Final = re.compile(
    r"event|scan|track|histor|checkpoint|log|detail|activit|trace|status|milestone"
)
_CLOCK: Final = re.compile(r"\d{1,2}:?\d{2}(?::?\d{2})?(?:\.\d+)?")
_NUMBER: Final = re.compile(r"(?=.*\d)[\w./ -]{6,40}", re.ASCII)
_EPOCH: Final = re.compile(r"1\d{9}(?:\d{3})?")
_DAYS: Final = ("%-d/%-m/%Y", "%-m/%-d/%Y", "%-d-%-m-%Y", "%-m-%-d-%Y", "%-d.%-m.%Y", "%Y%m%d")
_CLOCKS: Final = ("%-H:%M[:%S][%f][%z]", "%-I:%M[:%S] %p", "%H%M[%S]")
_FORMATS: Final = tuple(
    f"{day}{between}{clock}"
    for day in _DAYS
    for clock in _CLOCKS
    for between in (" ", "T", "")
    if between or day == "%Y%m%d"
) + tuple(_DAYS)
_DOUBTFUL: Final = "  # doubtful: "

Event = dict[str, str]


class _Draft(NamedTuple):
    events_at: str
    events: list[Event]
    paths: dict[str, str]
    rivals: dict[str, list[str]]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("carrier", help="the id that it is to have")
    parser.add_argument("samples", metavar="FILE", nargs="+", type=Path, help="a body as pushed")
    parser.add_argument(
        "--into", type=Path, help="a folder that is not there (default: CARRIER-statesvc)"
    )


def run(options: argparse.Namespace) -> int:
    """Write the package; name the doubtful parts."""
    carrier, folder = options.carrier, options.into or Path(f"{options.carrier}-statesvc")
    if not carrier.isidentifier() or carrier != carrier.lower() or carrier in CARRIERS:
        raise CommandError(
            (
                f"{carrier} cannot be the id of a new carrier: lower-case letters, digits and"
                " _, and not one of `statesvc carriers`"
            ),
            exit_code=2,
        )
    try:
        module = draft(carrier, options.samples, folder)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}", exit_code=2) from None
    except UnreadableMessageError as error:
        raise CommandError(f"a sample is neither JSON, XML nor a form: {error.detail}") from None
    doubts = [line.strip() for line in module.splitlines() if _DOUBTFUL.strip() in line]
    write_line("\n".join(doubts))
    write_line(f"{folder}: correct {carrier}.py ({len(doubts)} doubtful lines) and its test")
    write_line("samples/ holds what the carrier sent, personal data included")
    return 0


def draft(carrier: str, samples: Sequence[Path], folder: Path) -> str:
    """Write the package into a new folder; return its module's text."""
    values = [read_value(sample.read_bytes()) for sample in samples]
    found = max((_drafted(values, path) for path in _lists(values)), key=_likeness, default=None)
    if found is None:
        raise CommandError("no sample holds an object with a date")
    module = _module(carrier, found, [sample.name for sample in samples])
    texts = {
        f"{carrier}.py": module,
        f"test_{carrier}.py": _test(carrier, module, samples),
        "pyproject.toml": PROJECT.format(carrier=carrier, constant=carrier.upper()),
    }
    folder.mkdir(parents=True)
    for name, text in texts.items():
        folder.joinpath(name).write_text(text, "utf-8")
    folder.joinpath("samples").mkdir()
    for sample in samples:
        shutil.copy(sample, folder / "samples" / sample.name)
    return module


def _lists(values: Iterable[object]) -> list[str]:
    """Return the paths of all dated objects, the first found first."""
    return [*dict.fromkeys(path for value in values for path in _dated(value, ""))]


def _dated(value: object, path: str) -> Iterator[str]:
    if type(value) is list:
        for each in value:
            yield from _dated(each, f"{path}/{LIST}")
    elif type(value) is dict:
        if any(_is_time(name, each) for name, each in scalars(value, "").items()):
            yield path
        inner = [each for each in value.values() if type(each) in (dict, list)]
        is_keyed = len(inner) == len(value) and all(re.search(r"\d", name) for name in value)
        for name, each in value.items():
            yield from _dated(each, f"{path}/{KEYS if is_keyed else name}")


def _is_time(path: str, printed: str) -> bool:
    name = path.rpartition("/")[2]
    return is_date(name, printed) or (
        _EPOCH.fullmatch(printed) is not None and is_date(name, int(printed))
    )


def _drafted(values: Iterable[Any], path: str) -> _Draft:
    events = [event for value in values for _, event in flat_events(value, path, Rejections())]
    paths: dict[str, str] = {}
    rivals: dict[str, list[str]] = {}
    own = f"{path}/"
    roles: tuple[tuple[str, Callable[[str, str], bool], bool], ...] = (
        ("time", _is_time, True),
        ("clock", lambda _, printed: _CLOCK.fullmatch(printed) is not None, True),
        ("code", lambda _, printed: len(printed) <= 80, True),
        ("text", lambda _, printed: not printed.isdecimal(), True),
        ("number", _is_number, False),
        ("city", lambda _, printed: not printed.isdecimal(), True),
        ("country", lambda _, printed: len(printed) <= 40, True),
        ("postal_code", lambda _, printed: len(printed) <= 10, True),
    )
    for role, fits, is_own in roles:
        fields: dict[str, list[str]] = {}
        for event in events:
            for at, printed in event.items():
                if at.startswith(own) or not is_own:
                    fields.setdefault(at, []).append(printed)
        if role == "clock" and not (found := fields.get(paths.get("time", ""), [])):
            continue
        if role == "clock" and any(":" in each or len(each) > len("2026-01-01") for each in found):
            continue
        ranked = sorted(
            (rank, at)
            for at, printed in fields.items()
            if at not in paths.values()
            and (rank := _rank(role, at, own)) is not None
            and all(fits(at, each) for each in printed)
        )
        if ranked:
            paths[role] = ranked[0][1]
            rivals[role] = [at for rank, at in ranked[1:] if rank == ranked[0][0]]
    return _Draft(path, events, paths, rivals)


def _rank(role: str, path: str, own: str) -> tuple[int, int] | None:
    """Return how likely a path is of a role by its name, the lowest the likeliest."""
    outer, _, name = path.rpartition("/")
    others = _OTHERS.get(role)
    if others and re.search(others, squashed(path.removeprefix(own))):
        return (len(_NAMES[role]), 0) if role == "time" else None
    if name.startswith(("@", "#")):
        name = f"{outer.rpartition('/')[2]}{name}"
    if name != KEYS:
        name = squashed(name)
    rank = next((at for at, names in enumerate(_NAMES[role]) if re.search(names, name)), None)
    return None if rank is None else (rank, path.count("/"))


def _is_number(path: str, printed: str) -> bool:
    return _NUMBER.fullmatch(printed) is not None and not _is_time(path, printed)


def _likeness(found: _Draft) -> tuple[int, ...]:
    """Return how much a list is like a list of events."""
    named = [step for step in found.events_at.split("/") if step not in (LIST, KEYS)]
    words = found.paths.keys() & {"code", "text"}
    return (
        bool(words),
        bool(named) and _CONTAINER.search(squashed(named[-1])) is not None,
        found.events_at.endswith((LIST, KEYS)),
        len(words),
        "number" in found.paths,
        -found.events_at.count("/"),
    )


def _module(carrier: str, found: _Draft, samples: Sequence[str]) -> str:
    times = [_time(event, found) for event in found.events]
    is_epoch = all(map(_EPOCH.fullmatch, times))
    formats = [] if is_epoch else _formats(times)
    unread = not is_epoch and not formats and not all(map(ISO.read, times))
    walls = [TimeFormats(*formats[:1]).read(each) for each in times]
    is_local = not is_epoch and not all(wall and wall.offset is not None for wall in walls)
    paths = []
    for role in ("number", "time", "clock", "code", "text", "city", "country", "postal_code"):
        at, rivals = found.paths.get(role), found.rivals.get(role)
        doubt = f"{_DOUBTFUL}or {', '.join(rivals)}" if rivals else ""
        if at is None and role in ("number", "code", "text"):
            at, doubt = "", f"{_DOUBTFUL}found in no sample"
        if at is not None:
            paths.append(f'{role.upper()} = "{at}"{doubt}')
    printed = (
        'f"{event.get(TIME)} {event.get(CLOCK)}"' if "clock" in found.paths else "event.get(TIME)"
    )
    milliseconds = is_epoch and any(len(each) > len("1700000000") for each in times)
    number = found.paths.get("number", "").split("/")
    places = [role for role in ("city", "country", "postal_code") if role in found.paths]
    return MODULE.format(
        carrier=carrier,
        constant=carrier.upper(),
        samples=", ".join(samples),
        events_at=found.events_at,
        paths="\n".join(paths),
        formats=", ".join(f'"{each}"' for each in formats[:1]),
        formats_doubt=f"{_DOUBTFUL}or {', '.join(formats[1:])}"
        if formats[1:]
        else f"{_DOUBTFUL}name the format of {times[0]}"
        if unread
        else "",
        zone_doubt=f'{_DOUBTFUL}no offset is printed; an IANA name such as "Asia/Manila"'
        if is_local
        else "",
        codes="".join(f"    {line}\n" for line in _codes(found)),
        time=(
            f"kit.read_epoch(int(event[TIME]), milliseconds={milliseconds},"
            " received_at=received_at)"
        )
        if is_epoch
        else f"CLOCK.read({printed}, place, received_at=received_at)",
        place=", ".join(f"{role}=event.get({role.upper()})" for role in places),
        identity="local" if is_local else "instant",
        identity_place=', place=("city",)' if "city" in found.paths else "",
        number=".".join(number[-2:] if number[-1] == KEYS else number[-1:]),
    )


def _time(event: Event, found: _Draft) -> str:
    parts = (event.get(found.paths.get(role, ""), "") for role in ("time", "clock"))
    return " ".join(filter(None, parts))


def _formats(times: Sequence[str]) -> list[str]:
    """Return the formats that read all times.

    Empty if no format needs to be named, or none is known.
    """
    if all(map(ISO.read, times)):
        return []
    by_format = ((each, TimeFormats(each)) for each in _FORMATS)
    return [each for each, formats in by_format if all(map(formats.read, times))]


def _codes(found: _Draft) -> Iterator[str]:
    """Yield a line for each code, with the status that its texts or its own words mean."""
    texts: dict[str, list[str]] = {}
    for event in found.events:
        if code := event.get(found.paths.get("code", "")):
            texts.setdefault(code, []).append(event.get(found.paths.get("text", ""), ""))
    for code, words in sorted(texts.items()):
        meant = [
            proposal
            for text in (*dict.fromkeys(words), re.sub(r"[_-]", " ", code))
            if (proposal := proposed(text))
        ]
        said = f"{code}: {words[0]}" if words[0] else code
        if not meant:
            yield f"{code!r}: kit.UNMAPPED,{_DOUBTFUL}{said}"
            continue
        (_, status, reason, *_), why = meant[0]
        parts = [f"kit.{type(each).__name__}.{each.name}" for each in (status, reason) if each]
        is_certain = words[0] and len({each.meaning.status for each in meant}) == 1
        doubt = "  # " if is_certain else _DOUBTFUL
        yield f"{code!r}: kit.Meaning({', '.join(['kit.Kind.SCAN', *parts])}),{doubt}{said} ({why})"


def _test(carrier: str, module: str, samples: Sequence[Path]) -> str:
    """Return the text of the test, with each sample as the draft reads it."""
    names: dict[str, Any] = {"__name__": carrier}
    exec(compile(module, f"{carrier}.py", "exec"), names)  # noqa: S102 - the module of the draft itself
    lines = ""
    for sample in samples:
        read = names["normalize"](sample.read_bytes(), datetime.now(UTC)).readings
        events = [
            (
                reading.tracking_number,
                reading.raw.code,
                reading.status and reading.status.value,
                reading.time.instant.isoformat(),
            )
            for reading in read
        ]
        lines += f"    {sample.name!r}: [\n"
        lines += "".join(f"        {event!r},\n" for event in events)
        lines += "    ],\n"
    return TEST.format(carrier=carrier, samples=lines)
