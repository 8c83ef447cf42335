"""Findings of doctor about the server: its version, its housekeeping and the zones of workers."""

from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from events.parsing.zones import IANA_RELEASE
from statesvc.cli.doctor.checks import check_zones
from statesvc.cli.doctor.server_checks import check_checkpoints, check_housekeeping, check_version
from statesvc.health.finding import Urgency


@pytest.mark.parametrize(
    ("version", "name", "urgency", "said"),
    [
        (150010, "15.10", Urgency.NOW, "too old"),
        (160004, "16.4", Urgency.HUMAN, "transaction_timeout"),
        (170000, "17.0", Urgency.OK, "PostgreSQL 17.0"),
        (180004, "18.4", Urgency.OK, "PostgreSQL 18.4"),
        (190000, "19.0", Urgency.OK, "PostgreSQL 19.0"),
        (190000, "19beta1", Urgency.HUMAN, "19beta1 is no release"),
    ],
)
def test_a_server_is_judged_by_its_version(
    version: int, name: str, urgency: Urgency, said: str
) -> None:
    finding = check_version(version, name)
    assert (finding.urgency, said in finding.text) == (urgency, True)


GIB: Final = 1024**3


@pytest.mark.parametrize(
    ("changes", "urgency", "said"),
    [
        ({}, Urgency.OK, []),
        (
            {"buffers_bytes": GIB // 8, "wal_bytes": GIB, "writer_delay_ms": 200},
            Urgency.HUMAN,
            [
                "shared_buffers is 128 MB",
                "max_wal_size is 1024 MB",
                "wal_writer_delay is 200 ms",
            ],
        ),
        ({"vacuums": False}, Urgency.NOW, ["autovacuum is off"]),
    ],
)
def test_a_server_that_does_not_keep_house_beside_webhooks_is_told_why(
    changes: dict[str, Any], urgency: Urgency, said: list[str]
) -> None:
    well = {"buffers_bytes": GIB, "wal_bytes": 2 * GIB, "writer_delay_ms": 10, "vacuums": True}
    found = check_housekeeping(**{**well, **changes})
    assert [(each.urgency, each.text.split(":")[0]) for each in found] == [
        (urgency, text) for text in said
    ]


def test_a_large_database_with_frequent_checkpoints_writes_whole_pages_too_often() -> None:
    size, timeout = check_checkpoints(
        size_bytes=40 * GIB, wal_bytes=2 * GIB, checkpoint_seconds=300
    )
    assert size.urgency is timeout.urgency is Urgency.HUMAN
    assert "max_wal_size is 2048 MB with a database of 40 GB" in size.text
    assert "checkpoint_timeout is 300 s" in timeout.text
    assert (
        list(check_checkpoints(size_bytes=40 * GIB, wal_bytes=16 * GIB, checkpoint_seconds=1800))
        == []
    )
    assert list(check_checkpoints(size_bytes=GIB, wal_bytes=2 * GIB, checkpoint_seconds=300)) == []


async def test_a_worker_with_another_release_is_a_warning_until_it_is_gone(
    service: AsyncConnection[None], owner: AsyncConnection[None]
) -> None:
    await owner.execute(
        "INSERT INTO statesvc.zone_release (zones, first_at, last_at) VALUES ('2025b', now(),"
        " now())"
    )
    await owner.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at,"
        " last_seen_at, zones) VALUES ('w', 'worker', 'h', 1, '0', statesvc.clock(),"
        " statesvc.clock(), '2025b')"
    )
    (found,) = [finding async for finding in check_zones(service)]
    assert found.urgency is Urgency.HUMAN
    assert f"by release 2025b of the IANA time zones, this command by {IANA_RELEASE}" in found.text
    await owner.execute("DELETE FROM statesvc.worker")
    (found,) = [finding async for finding in check_zones(service)]
    assert found.urgency is Urgency.OK
    assert "earlier: 2025b from" in found.text
