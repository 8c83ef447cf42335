"""Time formats as explicit lists: any other time is unreadable, never guessed.

Besides its list every format accepts unambiguous dates: with the year first, or with the month's
name.
"""

import re
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from events.vocabulary import TimePrecision

_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)

_DIRECTIVES: Final = {
    "%Y": r"(?P<Y>\d{4})",
    "%y": r"(?P<y>\d{2})",
    "%m": r"(?P<m>\d{2})",
    "%-m": r"(?P<m>\d{1,2})",
    "%d": r"(?P<d>\d{2})",
    "%-d": r"(?P<d>\d{1,2})",
    "%b": r"(?P<b>[A-Za-z]{3,9})\.?",
    "%H": r"(?P<H>\d{2})",
    "%-H": r"(?P<H>\d{1,2})",
    "%I": r"(?P<I>\d{2})",
    "%-I": r"(?P<I>\d{1,2})",
    "%M": r"(?P<M>\d{2})",
    "%S": r"(?P<S>\d{2})",
    "%f": r"[.,](?P<f>\d{1,9})",
    "%p": r"(?P<p>[AaPp])\.?[Mm]\.?",
    "%z": r"(?P<z>[Zz]|[+-]\d{2}(?::?\d{2})?)",
}
_PART: Final = re.compile(r"%-?[A-Za-z]|\[|\]| +|.", re.DOTALL)
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?\s*([+-]?)(\d{1,2})(?:[:.]?(\d{2}))?", re.ASCII)
_ZONE: Final = r"\s*(?P<z>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?"
_TIME: Final = r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
_HALF_DAY: Final = r"(?P<I>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}))?\s*(?P<p>[AaPp])\.?[Mm]\.?"
_YEAR_FIRST: Final = r"(?P<Y>(?:19|20)\d{2})(?P<sign>[-/])(?P<m>\d{1,2})(?P=sign)(?P<d>\d{1,2})"
_DAY_FIRST: Final = (
    r"(?:[A-Za-z]{3,9},?\s+)?(?P<d>\d{1,2})[- ](?P<b>[A-Za-z]{3,9})\.?[- ,]\s?(?P<Y>\d{4})"
)
_MONTH_FIRST: Final = (
    r"(?:[A-Za-z]{3,9},?\s+)?(?P<b>[A-Za-z]{3,9})\.?\s+(?P<d>\d{1,2}),?\s+(?P<Y>\d{4})"
)
_BASIC: Final = r"(?P<Y>(?:19|20)\d{2})(?P<m>\d{2})(?P<d>\d{2})T(?P<H>\d{2}):?(?P<M>\d{2})(?::?(?P<S>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
_UNAMBIGUOUS: Final = tuple(
    re.compile(pattern, re.ASCII)
    for pattern in (
        *(
            rf"{date_}{clock}{_ZONE}"
            for date_ in (_YEAR_FIRST, _DAY_FIRST, _MONTH_FIRST)
            for clock in (rf"(?:(?:T|,?\s+){_TIME})?", rf",?\s+{_HALF_DAY}")
        ),
        _BASIC + _ZONE,
    )
)
_OFFSET_MAX: Final = timedelta(hours=14)
_DAY_CHARS: Final = len("YYYYMMDD")
_OUT_OF_USE: Final = frozenset(
    date(year, month, day).toordinal()
    for year, month, day in (
        (1, 1, 1),
        (1753, 1, 1),
        (1899, 12, 30),
        (1900, 1, 1),
        (1970, 1, 1),
        (2079, 1, 1),
        (9999, 12, 31),
    )
)


class Wall(NamedTuple):
    """A wall clock as printed. `offset` and `zone` (its text) are None where none was printed."""

    local: datetime
    precision: TimePrecision
    identity: str
    offset: timedelta | None
    zone: str | None

    @property
    def is_sentinel(self) -> bool:
        """True if the date is a placeholder for `no date`."""
        return self.local.toordinal() in _OUT_OF_USE


class TimeFormats:
    """A list of formats, tried in turn.

    Directives are strptime's; `%-m %-d %-H %-I` take one or two digits, `%b` a month's name or
    its first three letters, `%f` matches the separator and one to nine digits, `%z` matches
    `Z`, `+01:00`, `+0100` or `+01`; `[...]` is optional; a blank takes any number of blanks.
    Unambiguous dates are accepted as well.
    """

    __slots__ = ("_patterns",)

    def __init__(self, *formats: str) -> None:
        listed = (
            re.compile("".join(map(_pattern, _PART.findall(spec))), re.ASCII) for spec in formats
        )
        # the carrier's own first: 03/04 is read as its list says, or not at all
        self._patterns = (*listed, *_UNAMBIGUOUS)

    def read(self, printed: str) -> Wall | None:
        """Read the wall clock; None where no format fits or the date does not exist."""
        for pattern in self._patterns:
            # whole, never a part: a date inside a sentence is no time of a scan
            match = pattern.fullmatch(printed)
            if match is not None and (wall := _wall(match.groupdict())) is not None:
                return wall
        return None


@lru_cache(maxsize=256)
def read_offset(printed: str) -> timedelta | None:
    """Read an offset printed by itself: `+08:00`, `-0500`, `-04.00`, `+8`, `UTC+1`, `Z`."""
    if printed in ("Z", "z", "UTC", "GMT"):
        return timedelta()
    match = _OFFSET.fullmatch(printed)
    if match is None:
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    if offset > _OFFSET_MAX:
        return None
    return -offset if match[1] == "-" else offset


def _pattern(part: str) -> str:
    match part:
        case "[":
            return "(?:"
        case "]":
            return ")?"
        case _ if part.isspace():
            return r"\s+"
        case _:
            return _DIRECTIVES[part] if part[0] == "%" else re.escape(part)


def _wall(parts: dict[str, str | None]) -> Wall | None:
    zone = parts.get("z")
    offset = None if zone is None else read_offset(zone)
    # a printed offset that is none: the time would be read in a zone that the carrier
    # contradicts
    if zone is not None and offset is None:
        return None
    year, day = parts.get("Y") or f"20{parts.get('y') or '00'}", parts["d"] or ""
    month = _month(parts) if "b" in parts else parts["m"] or ""
    identity = f"{year}{month.zfill(2)}{day.zfill(2)}"
    precision = TimePrecision.DAY
    if (minute := parts.get("M")) is not None:
        hour = _hour(parts) if "I" in parts else parts["H"] or ""
        identity += f"T{hour.zfill(2)}{minute}"
        precision = TimePrecision.MINUTE
        if (second := parts.get("S")) is not None:
            identity += second
            precision = TimePrecision.SECOND
            if (fraction := parts.get("f")) is not None:
                # cut, not rounded: two envelopes with more and fewer digits must not differ by a
                # carry
                identity += f".{fraction[:6].ljust(6, '0')}"
    local = _local(identity)
    return None if local is None else Wall(local, precision, identity, offset, zone)


def _local(identity: str) -> datetime | None:
    """Return the wall clock of an identity; None where it does not exist."""
    try:
        return datetime.fromisoformat(identity)
    except ValueError:
        return _carried(identity)


def _carried(identity: str) -> datetime | None:
    """Return the wall clock of a leap second, and of 24:00, which begin the next
    minute and the next day.
    """
    day, clock = identity[:_DAY_CHARS], identity[_DAY_CHARS + 1 :]
    if clock[:2] == "24" and not clock[2:6].strip("0"):
        begun, carry = f"{day}T00{clock[2:]}", timedelta(days=1)
    elif clock[4:6] == "60":
        begun, carry = f"{day}T{clock[:4]}59{clock[6:]}", timedelta(seconds=1)
    else:
        return None
    try:
        return datetime.fromisoformat(begun) + carry
    except (ValueError, OverflowError):
        return None


def _month(parts: dict[str, str | None]) -> str:
    """Return the number of a month from its name; 00, which no year has, for another word."""
    short = (parts["b"] or "")[:3].lower()
    return str(_MONTHS.index(short) + 1) if short in _MONTHS else "00"


def _hour(parts: dict[str, str | None]) -> str:
    """Return the hour of the day from the hour of its half; 99, which no day has,
    where that is used wrongly.
    """
    hour = int(parts["I"] or 0)
    if not 1 <= hour <= 12:
        return "99"
    return str(hour % 12 + (12 if (parts.get("p") or "").lower() == "p" else 0))


ISO: Final = TimeFormats("%Y-%m-%dT%H:%M:%S[%f][%z]", "%Y-%m-%dT%H:%M[%z]", "%Y-%m-%d")
