"""Findings of doctor about the server: its version and its housekeeping."""

from typing import Any, Final

import pytest

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
