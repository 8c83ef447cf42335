"""Times and zones of carriers' events."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from events.event import NOWHERE, EventPlace, PrintedTime
from events.parsing.formats import ISO, TimeFormats, read_offset
from events.parsing.times import Clock, read_epoch
from events.parsing.zones import IANA_RELEASE
from events.vocabulary import TimePrecision, TzSource

RECEIVED_AT: Final = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
COMPACT: Final = Clock(formats=TimeFormats("%Y%m%d %H%M%S", "%Y%m%d %H%M", "%Y%m%d"))
OFFSETS: Final = Clock(formats=ISO, midnight_is_day=True)
NEW_YORK: Final = EventPlace(country="US", region="NY")


def at(clock: Clock, printed: str | None, place: EventPlace = NOWHERE) -> PrintedTime:
    moment = clock.read(printed, place, received_at=RECEIVED_AT)
    assert moment is not None
    return moment


@pytest.mark.parametrize(
    ("spec", "printed", "identity", "precision"),
    [
        ("%-m/%-d/%Y %-I:%M:%S %p", "8/17/2021 7:11:26 PM", "20210817T191126", "second"),
        ("%-m/%-d/%Y %-I:%M %p", "1/2/2024 12:05 am", "20240102T0005", "minute"),
        ("%b %-d, %Y %-I:%M %p", "April 28, 2015 9:01 pm", "20150428T2101", "minute"),
        ("%d.%m.%Y %H:%M", "17.03.2016 11:44", "20160317T1144", "minute"),
        ("%d%m%Y %H%M", "21062017  1530", "20170621T1530", "minute"),
        ("%d-%b-%y", "05-Sep-26", "20260905", "day"),
        (
            "%Y-%m-%dT%H:%M:%S[%f][%z]",
            "2026-04-17T23:43:17.6571145",
            "20260417T234317.657114",
            "second",
        ),
        (
            "%Y-%m-%dT%H:%M:%S[%f][%z]",
            "2026-04-17T23:43:17,5+0200",
            "20260417T234317.500000",
            "second",
        ),
    ],
)
def test_a_time_is_read_by_its_format(
    spec: str, printed: str, identity: str, precision: str
) -> None:
    moment = at(Clock(formats=TimeFormats(spec)), printed)
    assert (moment.identity, moment.precision, moment.printed) == (identity, precision, printed)


@pytest.mark.parametrize(
    ("clock", "printed"),
    [
        *(
            (OFFSETS, printed)
            for printed in [
                "2024-02-30T10:00:00Z",
                "2024-13-01T10:00:00Z",
                "2024-01-02T03:04:05+25:00",
                "2024-01-02T24:30:00Z",
                "10000-01-01T00:00:00Z",
                "2024-01-02T03:04:05 CST",
                "2024-W01-2",
                "20240102",
                "01/02/2024",
                "+2024-01-02T03:04:05Z",
                "２０２４-01-02T03:04:05Z",
                "string",
            ]
        ),
        *(
            (Clock(formats=TimeFormats("%-m/%-d/%Y")), printed)
            for printed in [
                "2024-13-02",
                "2024-01/02",
                "2024-01-02 25:00",
                "2024-01-02 13:00 PM",
                "02 Foo 2024",
                "1899-01-02",
                "20240102030405",
            ]
        ),
        (Clock(formats=TimeFormats("%m/%d/%Y %I:%M %p")), "01/02/2024 13:05 PM"),
    ],
)
def test_what_no_format_fits_is_unreadable_and_never_guessed(clock: Clock, printed: str) -> None:
    assert clock.read(printed, received_at=RECEIVED_AT) is None


@pytest.mark.parametrize(
    "printed",
    [
        *(None, "00:00:00", "N/A", "0000-00-00", "0000-00-00 00:00:00", "0000-00-00T00:00:00Z"),
        *(
            "0001-01-01T00:00:00",
            "1970-01-01T00:00:00Z",
            "9999-12-31",
            "1900-01-01",
            "1753-01-01T00:00:00",
            "1899-12-30",
        ),
    ],
)
def test_an_absent_time_is_when_we_received_it_and_no_part_of_the_identity(
    printed: str | None,
) -> None:
    moment = at(OFFSETS, printed)
    assert (moment.instant, moment.tz_source, moment.identity) == (
        RECEIVED_AT,
        TzSource.RECEIVED,
        "",
    )


@pytest.mark.parametrize(
    ("clock", "printed", "place", "instant", "source"),
    [
        (
            OFFSETS,
            "2026-03-01T10:00:00-05:00",
            EventPlace(country="DE"),
            "2026-03-01T10:00:00-05:00",
            TzSource.EXPLICIT,
        ),
        (OFFSETS, "2026-03-01T10:00:00Z", NOWHERE, "2026-03-01T10:00:00+00:00", TzSource.EXPLICIT),
        (
            COMPACT,
            "20260301 100000",
            EventPlace(country="DE"),
            "2026-03-01T10:00:00+01:00",
            TzSource.LOCATION,
        ),
        (
            COMPACT,
            "20260701 100000",
            EventPlace(country="AU", region="nsw"),
            "2026-07-01T10:00:00+10:00",
            TzSource.LOCATION,
        ),
        (
            COMPACT,
            "20260301 100000",
            EventPlace(country="XX"),
            "2026-03-01T10:00:00+00:00",
            TzSource.ASSUMED_UTC,
        ),
        (
            Clock(formats=ISO, default_zone="Asia/Shanghai"),
            "2026-03-01T10:00:00",
            NOWHERE,
            "2026-03-01T10:00:00+08:00",
            TzSource.CARRIER_DEFAULT,
        ),
        (
            Clock(formats=ISO, trust_offset=False),
            "2026-03-01T10:00:00Z",
            EventPlace(country="DE"),
            "2026-03-01T10:00:00+01:00",
            TzSource.LOCATION,
        ),
    ],
)
def test_the_best_known_offset_holds(
    clock: Clock, printed: str, place: EventPlace, instant: str, source: TzSource
) -> None:
    moment = at(clock, printed, place)
    assert (moment.instant.isoformat(), moment.tz_source) == (instant, source)


def test_the_repeated_hour_of_autumn_is_its_first_one_and_says_so() -> None:
    moment = at(COMPACT, "20241103 013000", NEW_YORK)
    assert (moment.instant.isoformat(), moment.flag) == ("2024-11-03T01:30:00-04:00", "ambiguous")


def test_the_missing_hour_of_spring_is_shifted_and_says_so() -> None:
    moment = at(COMPACT, "20240310 023000", NEW_YORK)
    assert (moment.instant.isoformat(), moment.flag, moment.identity) == (
        "2024-03-10T03:30:00-04:00",
        "shifted",
        "20240310T023000",
    )


def test_a_state_with_two_zones_says_so_until_a_postal_code_or_a_city_decides() -> None:
    unsure = at(COMPACT, "20240423 091519", EventPlace(country="US", region="TX"))
    by_city = at(COMPACT, "20240423 091519", EventPlace(country="US", region="TX", city="EL PASO"))
    el_paso = at(
        COMPACT, "20240423 091519", EventPlace(country="US", region="TX", postal_code="79901")
    )
    assert (unsure.instant.utcoffset(), unsure.flag) != (el_paso.instant.utcoffset(), el_paso.flag)
    assert (unsure.flag, el_paso.flag) == ("split_region", None)
    assert (by_city.instant, by_city.flag) == (el_paso.instant, None)


@pytest.mark.parametrize(
    ("local", "utc", "instant", "source"),
    [
        ("20240423 091519", "20240423 131519", "2024-04-23T09:15:19-04:00", TzSource.PAIR),
        ("20240423 014500", "20240422 201500", "2024-04-23T01:45:00+05:30", TzSource.PAIR),
        ("20240423 091500", "20240423 131540", "2024-04-23T09:15:00-04:00", TzSource.PAIR),
        ("20240423 091519", "20240425 131519", "2024-04-23T09:15:19+00:00", TzSource.ASSUMED_UTC),
        ("20240423 091519", None, "2024-04-23T09:15:19+00:00", TzSource.ASSUMED_UTC),
        ("20240423 091519", "nonsense", "2024-04-23T09:15:19+00:00", TzSource.ASSUMED_UTC),
    ],
)
def test_a_pair_of_local_and_utc_tells_the_offset_if_it_is_one(
    local: str, utc: str | None, instant: str, source: TzSource
) -> None:
    moment = COMPACT.read_pair(local, utc, received_at=RECEIVED_AT)
    assert moment is not None
    assert (moment.instant.isoformat(), moment.tz_source, moment.printed) == (
        instant,
        source,
        local,
    )


@pytest.mark.parametrize(
    ("zone", "instant", "source"),
    [
        ("+8", "2024-07-23T09:15:19+08:00", TzSource.EXPLICIT),
        ("-04.00", "2024-07-23T09:15:19-04:00", TzSource.EXPLICIT),
        ("America/New_York", "2024-07-23T09:15:19-04:00", TzSource.EXPLICIT),
        ("Nowhere/Land", "2024-07-23T09:15:19+00:00", TzSource.ASSUMED_UTC),
        ("../../etc/passwd", "2024-07-23T09:15:19+00:00", TzSource.ASSUMED_UTC),
        (None, "2024-07-23T09:15:19+00:00", TzSource.ASSUMED_UTC),
    ],
)
def test_a_zone_beside_the_time_is_trusted_if_it_is_one(
    zone: str | None, instant: str, source: TzSource
) -> None:
    moment = COMPACT.read_with_offset("20240723 091519", zone, received_at=RECEIVED_AT)
    assert moment is not None
    assert (moment.instant.isoformat(), moment.tz_source, moment.zone) == (instant, source, zone)


def test_a_midnight_without_offset_is_a_day_where_the_carrier_prints_days_so() -> None:
    assert at(OFFSETS, "2014-01-03T00:00:00").precision is TimePrecision.DAY
    assert at(OFFSETS, "2014-01-03T00:00:00Z").precision is TimePrecision.SECOND
    assert at(Clock(formats=ISO), "2014-01-03T00:00:00").precision is TimePrecision.SECOND


@pytest.mark.parametrize(
    ("printed", "instant"),
    [
        ("2024-01-02T24:00:00Z", "2024-01-03T00:00:00+00:00"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00"),
    ],
)
def test_the_end_of_a_day_and_a_leap_second_are_times(printed: str, instant: str) -> None:
    assert at(OFFSETS, printed).instant.isoformat() == instant


@pytest.mark.parametrize(
    ("value", "milliseconds", "instant", "identity"),
    [
        (1704110400, False, "2024-01-01T12:00:00+00:00", "20240101T120000"),
        (1719299439635, True, "2024-06-25T07:10:39.635000+00:00", "20240625T071039.635000"),
    ],
)
def test_an_epoch_is_utc(value: int, milliseconds: bool, instant: str, identity: str) -> None:  # noqa: FBT001
    moment = read_epoch(value, milliseconds=milliseconds, received_at=RECEIVED_AT)
    assert moment is not None
    assert (moment.instant.isoformat(), moment.identity) == (instant, identity)


def test_an_epoch_beyond_the_calendar_is_unreadable_and_none_is_absent() -> None:
    absent = read_epoch(0, received_at=RECEIVED_AT)
    assert read_epoch(10**18, received_at=RECEIVED_AT) is None
    assert absent is not None
    assert absent.tz_source is TzSource.RECEIVED


@pytest.mark.parametrize("printed", ["EST", "+25", "+15:00", "1:2:3", "", "é"])
def test_what_is_no_offset_is_none(printed: str) -> None:
    assert read_offset(printed) is None


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("2024-01-02 03:04", "2024-01-02T03:04:00+00:00"),
        ("2024-1-2 3:04:05", "2024-01-02T03:04:05+00:00"),
        ("2024/01/02 03:04:05.25", "2024-01-02T03:04:05.250000+00:00"),
        ("2024-01-02 03:04:05 +0100", "2024-01-02T03:04:05+01:00"),
        ("2024-01-02T03:04:05 +01:00", "2024-01-02T03:04:05+01:00"),
        ("2024-01-02 03:04:05 PM", "2024-01-02T15:04:05+00:00"),
        ("20240102T030405Z", "2024-01-02T03:04:05+00:00"),
        ("20240102T0304", "2024-01-02T03:04:00+00:00"),
        ("2024-01-02 03:04:05 UTC", "2024-01-02T03:04:05+00:00"),
        ("Tue, 02 Jan 2024 03:04:05 GMT", "2024-01-02T03:04:05+00:00"),
        ("02-Jan-2024 03:04", "2024-01-02T03:04:00+00:00"),
        ("2 January 2024", "2024-01-02T00:00:00+00:00"),
        ("January 2, 2024, 3:04 pm", "2024-01-02T15:04:00+00:00"),
        ("Tuesday, Jan 2, 2024 12:04 AM", "2024-01-02T00:04:00+00:00"),
    ],
)
def test_what_leaves_nothing_to_guess_is_read_whatever_the_formats(
    printed: str, expected: str
) -> None:
    moment = Clock(formats=TimeFormats("%-m/%-d/%Y")).read(printed, received_at=RECEIVED_AT)
    assert moment is not None
    assert moment.instant.isoformat() == expected


@pytest.mark.usefixtures("own_processes")
def test_the_zones_of_the_machine_are_not_read(tmp_path: Path) -> None:
    vancouver = tmp_path / "America" / "Vancouver"
    vancouver.parent.mkdir()
    # one zone, always at UTC
    vancouver.write_bytes(
        b"TZif"
        + bytes(16)
        + bytes(15)
        + b"\1"
        + bytes(3)
        + b"\1"
        + bytes(3)
        + b"\4"
        + bytes(6)
        + b"UTC\0"
    )
    read = (
        "import events, zoneinfo, datetime; print(datetime.datetime(2026, 12, 1,"
        " tzinfo=zoneinfo.ZoneInfo('America/Vancouver')).utcoffset())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", read],
        env={**os.environ, "PYTHONTZPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert printed.strip() == "-1 day, 17:00:00"


def test_the_release_is_one_that_knows_the_latest_rules() -> None:
    """British Columbia keeps summer time from November 2026 on."""
    assert IANA_RELEASE >= "2026f"
    december = datetime(2026, 12, 1, tzinfo=ZoneInfo("America/Vancouver"))
    assert december.strftime("%z") == "-0700"
