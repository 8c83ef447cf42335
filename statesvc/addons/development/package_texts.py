"""The texts of a drafted carrier package: its module, its test and its project."""

from typing import Final

MODULE: Final = """\
\"\"\"{carrier}: drafted by `statesvc carriers draft` from {samples}. Compare each line with the carrier's document.\"\"\"

from collections.abc import Iterator
from datetime import datetime

from statesvc.carrier_package import kit

EVENTS = "{events_at}"
{paths}

CLOCK = kit.Clock(
    formats=kit.TimeFormats({formats}),{formats_doubt}
    default_zone=None,{zone_doubt}
)
CODES = {{
{codes}}}


def meaning(raw: kit.Raw) -> kit.Meaning:
    return CODES.get(raw.code or "", kit.UNMAPPED)


@kit.normalizer
def normalize(
    body: bytes, received_at: datetime, rejections: kit.Rejections
) -> Iterator[kit.Reading]:
    for where, event in kit.flat_events(kit.read_value(body), EVENTS, rejections):
        raw = kit.Raw(code=event.get(CODE))
        place = kit.place({place})
        scan = kit.Scan(
            where=where,
            raw=raw,
            meaning=meaning(raw),
            time={time},
            place=place,
            description=event.get(TEXT),
        )
        yield from kit.reading_of(scan, event.get(NUMBER), rejections)


{constant} = kit.InstalledCarrier(
    carrier=kit.Carrier(
        carrier_id="{carrier}",
        name="{carrier}",
        normalizers={{"1": normalize}},
        formats=("drafted",),
        authentication=(kit.ShipperChoice(),),
        number_fields=("{number}",),
        reread=meaning,
    ),
    # what makes two statements one scan, final with the first event: docs/identity.md
    recipe=kit.Recipe(time="{identity}", codes=("code",){identity_place}),
)
"""
TEST: Final = """\
\"\"\"The samples as the draft read them: change what the carrier's document says otherwise, then the module.\"\"\"

from datetime import UTC, datetime
from pathlib import Path

import pytest

from {carrier} import normalize

RECEIVED_AT = datetime.now(UTC)
READ = {{
{samples}}}


@pytest.mark.parametrize("sample", READ)
def test_a_sample_is_read(sample: str) -> None:
    read = normalize((Path(__file__).parent / "samples" / sample).read_bytes(), RECEIVED_AT)
    assert read.rejections == ()
    assert [
        (
            reading.tracking_number,
            reading.raw.code,
            reading.status and reading.status.value,
            reading.time.instant.isoformat(),
        )
        for reading in read.readings
    ] == READ[sample]
"""
PROJECT: Final = """\
[project]
name = "{carrier}-statesvc"
version = "1.0"
dependencies = ["statesvc"]

[project.entry-points."statesvc.carriers"]
{carrier} = "{carrier}:{constant}"

[tool.setuptools]
py-modules = ["{carrier}"]
"""
