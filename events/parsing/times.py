"""Conversion of printed times to instants: which offset holds, and how we know it.

The order of belief: an offset that the carrier prints, a printed pair of local and UTC time, the
zone of the place, that of the shipment's origin or destination, the home of the service or carrier,
UTC. Only `instant`, `tz_source`, `precision` and `flag` are our reading; `printed` and `identity`
are the carrier's words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final, Literal
from zoneinfo import ZoneInfo

from events.event import NOWHERE, EventPlace, PrintedTime
from events.parsing.cities import bearers
from events.parsing.formats import TimeFormats, Wall, read_offset
from events.parsing.whereabouts import NO_JOURNEY, Journey, zone_of_scan
from events.parsing.zones import LocalZone, agreed, same_time
from events.vocabulary import TimePrecision, TzSource

QUARTER: Final = timedelta(minutes=15)
PAIR_TOLERANCE: Final = timedelta(seconds=60)
OFFSET_MAX: Final = timedelta(hours=14)
MIDNIGHT: Final = datetime.min.time()
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

AMBIGUOUS: Final = "ambiguous"
SHIFTED: Final = "shifted"
# The place lies in a state or country with several zones, and the zone is undecided. Neither its
# postal code nor its city decides; or the shipment goes from one zone to another, and the scan may
# be in either.
SPLIT_REGION: Final = "split_region"
# The place is too vague: the zone is that of the shipment's origin or destination.
OF_SHIPMENT: Final = "of_shipment"

NO_TIME: Final = frozenset({"00:00:00", "000000", "null", "None", "N/A", "-"})
# MySQL's text for no date.
ZERO_DATE: Final = "0000-00-00"


def received(received_at: datetime, printed: str = "") -> PrintedTime:
    """Return when we got it, as the time of a scan that prints none.

    It has no part in the scan's identity.
    """
    return PrintedTime(
        printed=printed,
        instant=received_at,
        tz_source=TzSource.RECEIVED,
        precision=TimePrecision.SECOND,
        identity="",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clock:
    """A format of a carrier's times. A constant per format; compared and hashed by identity.

    `default_zone`: IANA name of the zone of local times at undecided places. `trust_offset`
    False: the printed offset (`Z`) is false, the time is local. `midnight_is_day`: 00:00:00
    without a true offset is a date only; `nowhere` where only a scan without a place is printed
    so. `country`: of places without a country, for a carrier that works in a single country.
    `prints_home`: its times are those of `default_zone` wherever the scan was. `airports`: its
    facilities may be IATA codes of airports or cities.
    """

    formats: TimeFormats
    default_zone: str | None = None
    trust_offset: bool = True
    midnight_is_day: bool | Literal["nowhere"] = False
    country: str | None = None
    prints_home: bool = False
    airports: bool = False

    def read(
        self,
        printed: str | None,
        place: EventPlace = NOWHERE,
        *,
        received_at: datetime,
        journey: Journey = NO_JOURNEY,
    ) -> PrintedTime | None:
        """Read a printed time. Absent or a sentinel (0001-01-01, ...): `received`.

        None: unreadable, a rejection for the caller to report.
        """
        if printed is None or printed in NO_TIME or printed.startswith(ZERO_DATE):
            return received(received_at, printed or "")
        days = self.midnight_is_day is True or (
            self.midnight_is_day == "nowhere" and place == NOWHERE
        )
        local_zone = (
            None
            if self.prints_home
            else zone_of_scan(place, journey, country=self.country, airports=self.airports)
        )
        # the zone is an argument: with the place itself the cache would hardly ever hit
        found = _read(self, printed, local_zone, home=journey.home or self.default_zone, days=days)
        return received(received_at, printed) if found is _ABSENT else found

    def read_pair(
        self,
        printed: str | None,
        utc: str | None,
        place: EventPlace = NOWHERE,
        *,
        received_at: datetime,
        journey: Journey = NO_JOURNEY,
    ) -> PrintedTime | None:
        """Read a local time printed next to the same time in UTC; as `read` where the second is
        absent or contradicts the first.
        """
        found = _read_pair(self, printed, utc) if printed and utc else None
        return (
            self.read(printed, place, received_at=received_at, journey=journey)
            if found is None
            else found
        )

    def read_with_offset(
        self,
        printed: str | None,
        zone: str | None,
        place: EventPlace = NOWHERE,
        *,
        received_at: datetime,
        journey: Journey = NO_JOURNEY,
    ) -> PrintedTime | None:
        """Read a local time with its offset (`+8`, `-04.00`) or IANA zone in a field of its own; as
        `read` where that is neither.
        """
        wall = self.formats.read(printed) if printed else None
        if printed is None or wall is None or wall.is_sentinel or zone is None:
            return self.read(printed, place, received_at=received_at, journey=journey)
        offset = read_offset(zone)
        if offset is not None:
            return replace(
                _printed_time(printed, wall, _fixed(wall.local, offset), TzSource.EXPLICIT),
                zone=zone,
            )
        # only Area/City: `EST` and the like are names of several zones
        named = zone_named(zone) if "/" in zone else None
        if named is None:
            found = self.read(printed, place, received_at=received_at, journey=journey)
            return None if found is None else replace(found, zone=zone)
        return replace(_in_zone(printed, wall, LocalZone(named), TzSource.EXPLICIT), zone=zone)


def read_epoch(
    value: int | None, *, milliseconds: bool = False, received_at: datetime
) -> PrintedTime | None:
    """Read seconds (or milliseconds) since 1970; 0 and None are absent; None where
    no date has that value.
    """
    if not value:
        return received(received_at)
    try:
        instant = EPOCH + (
            timedelta(milliseconds=value) if milliseconds else timedelta(seconds=value)
        )
    except OverflowError:
        return None
    identity = instant.strftime("%Y%m%dT%H%M%S") + (
        f".{instant.microsecond:06}" if milliseconds else ""
    )
    return PrintedTime(
        printed=str(value),
        instant=instant,
        tz_source=TzSource.EXPLICIT,
        precision=TimePrecision.SECOND,
        identity=identity,
        zone="UTC",
    )


def at_offset(
    time: PrintedTime, local: datetime, offset: timedelta, source: TzSource, zone: str | None = None
) -> PrintedTime:
    """Return the time with another offset; `source` is its source."""
    return replace(
        time,
        instant=_fixed(local, offset),
        tz_source=source,
        zone=time.zone if zone is None else zone,
        flag=None,
    )


def is_zone(name: str) -> bool:
    return zone_named(name) is not None


def in_account(time: PrintedTime, place: EventPlace, zones: Sequence[str]) -> PrintedTime:
    """Return a time with a default zone in a zone of the account; leave others unchanged.

    `zones` are IANA names. That of the city, if it lies in one of them; else the default, if it
    is one of them; else the first.
    """
    if time.tz_source not in _ASSUMED:
        return time
    if len(zones) > 1:
        known = bearers(place.city) if place.city else ()
        theirs = [its.zone for each in known if (its := agreed([each]))]
        within = [
            zone for zone in map(ZoneInfo, zones) if any(same_time(zone, each) for each in theirs)
        ]
        # the city lies in exactly one of the account's zones; in two of them it decides nothing
        if len(within) == 1:
            return _in_zone_of_account(time, within[0], TzSource.LOCATION)
    found = [_in_zone_of_account(time, ZoneInfo(zone), TzSource.CARRIER_DEFAULT) for zone in zones]
    is_default = time.tz_source is TzSource.CARRIER_DEFAULT
    return next((each for each in found if is_default and each.instant == time.instant), found[0])


def _in_zone_of_account(time: PrintedTime, zone: ZoneInfo, source: TzSource) -> PrintedTime:
    shown = time.instant.replace(tzinfo=None)
    if time.flag == SHIFTED:
        # the hour that the default zone skipped
        shown = datetime.fromisoformat(time.identity)
    wall = Wall(shown, time.precision, time.identity, None, time.zone)
    return _in_zone(time.printed, wall, LocalZone(zone), source)


_ASSUMED: Final = frozenset({TzSource.CARRIER_DEFAULT, TzSource.ASSUMED_UTC})
_ABSENT: Final = received(EPOCH)


@lru_cache(maxsize=8192)
def _read(
    clock: Clock, printed: str, local_zone: LocalZone | None, *, home: str | None, days: bool
) -> PrintedTime | None:
    wall = clock.formats.read(printed)
    if wall is None:
        return None
    if wall.is_sentinel:
        return _ABSENT
    if days and (wall.offset is None or not clock.trust_offset) and wall.local.time() == MIDNIGHT:
        wall = wall._replace(precision=TimePrecision.DAY)
    # printed by the carrier: it wins over whatever we know of the place
    if wall.offset is not None and clock.trust_offset:
        return _printed_time(printed, wall, _fixed(wall.local, wall.offset), TzSource.EXPLICIT)
    if local_zone is not None:
        return _in_zone(printed, wall, local_zone, TzSource.LOCATION)
    default = zone_named(home) if home else None
    if default is not None:
        return _in_zone(printed, wall, LocalZone(default), TzSource.CARRIER_DEFAULT)
    return _printed_time(printed, wall, wall.local.replace(tzinfo=UTC), TzSource.ASSUMED_UTC)


@lru_cache(maxsize=8192)
def _read_pair(clock: Clock, printed: str, utc: str) -> PrintedTime | None:
    local_wall, utc_wall = clock.formats.read(printed), clock.formats.read(utc)
    if local_wall is None or utc_wall is None or local_wall.is_sentinel or utc_wall.is_sentinel:
        return None
    offset = offset_between(local_wall.local, utc_wall.local)
    return (
        None
        if offset is None
        else _printed_time(printed, local_wall, _fixed(local_wall.local, offset), TzSource.PAIR)
    )


def _in_zone(printed: str, wall: Wall, local_zone: LocalZone, source: TzSource) -> PrintedTime:
    first = wall.local.replace(tzinfo=local_zone.zone, fold=0)
    offset, later = (
        first.utcoffset() or timedelta(),
        first.replace(fold=1).utcoffset() or timedelta(),
    )
    flag = (OF_SHIPMENT if local_zone.of_shipment else None) if local_zone.certain else SPLIT_REGION
    if offset == later:
        return _printed_time(printed, wall, _fixed(wall.local, offset), source, flag)
    # an hour that is shown twice: the first of the two, and marked
    if offset > later:
        return _printed_time(printed, wall, _fixed(wall.local, offset), source, AMBIGUOUS)
    # an hour that was skipped: moved on as clocks were, and its printed wall kept for the identity
    return _printed_time(
        printed, wall, _fixed(wall.local + (later - offset), later), source, SHIFTED
    )


def _printed_time(
    printed: str, wall: Wall, instant: datetime, source: TzSource, flag: str | None = None
) -> PrintedTime:
    return PrintedTime(
        printed=printed,
        instant=instant,
        tz_source=source,
        precision=wall.precision,
        identity=wall.identity,
        zone=wall.zone,
        flag=flag,
    )


@lru_cache(maxsize=1024)
def offset_between(local: datetime, utc: datetime) -> timedelta | None:
    """Return the offset between a local time and the same time in UTC.

    None if their difference is not an offset.
    """
    difference = local - utc
    offset = round(difference / QUARTER) * QUARTER
    # no zone is further from UTC: then the two times are not of one instant
    return None if abs(difference - offset) > PAIR_TOLERANCE or abs(offset) > OFFSET_MAX else offset


def _fixed(local: datetime, offset: timedelta) -> datetime:
    return datetime.combine(local, local.time(), _fixed_zone(offset))


@lru_cache(maxsize=256)
def _fixed_zone(offset: timedelta) -> timezone:
    return timezone(offset) if offset else UTC


@lru_cache(maxsize=256)
def zone_named(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
