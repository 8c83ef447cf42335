"""Findings of doctor about the server: its version and its housekeeping."""

from statesvc.cli.doctor.server_checks import (
    MINORS,
    check_checkpoints,
    check_housekeeping,
    check_minor,
    check_version,
)
from statesvc.health.finding import Urgency


def test_a_server_that_is_too_old_must_be_replaced() -> None:
    assert check_version(150010, "15.10").urgency is Urgency.NOW


def test_a_server_that_cannot_limit_a_whole_transaction_will_do_and_what_that_means_is_said() -> (
    None
):
    finding = check_version(160004, "16.4")
    assert finding.urgency is Urgency.HUMAN
    assert "transaction_timeout" in finding.text


def test_a_newer_one_is_well() -> None:
    assert check_version(170000, "17.0").urgency is Urgency.OK
    assert check_version(180004, "18.4").text == "PostgreSQL 18.4"
    assert check_version(190000, "19.0").urgency is Urgency.OK


def test_a_server_before_its_release_is_called_by_its_name() -> None:
    finding = check_version(190000, "19beta1")
    assert finding.urgency is Urgency.HUMAN
    assert "19beta1 is no release" in finding.text


def test_a_server_that_lacks_minor_releases_is_told_which() -> None:
    finding = check_minor(180004)
    assert finding is not None
    assert finding.urgency is Urgency.HUMAN
    assert "PostgreSQL 18.4 has known faults" in finding.text
    assert "18.6 (2026-08-13)" in finding.text
    packaged = check_minor(180004, is_packaged=True)
    assert packaged is not None
    assert packaged.urgency is Urgency.NOTE, "no package has it, so that nobody can end a warning"
    behind_by_one = check_minor(170011)
    assert behind_by_one is not None
    assert "that 17.12 (2026-11-12) repairs" in behind_by_one.text
    assert "17.11 (" not in behind_by_one.text


def test_the_latest_minor_release_of_a_major_or_an_unknown_major_is_well() -> None:
    assert [check_minor(major * 10000 + minors[-1][0]) for major, minors in MINORS.items()] == [
        None
    ] * 3
    assert check_minor(190000) is None


def test_a_server_that_keeps_house_beside_webhooks_is_well() -> None:
    assert (
        list(
            check_housekeeping(
                buffers_bytes=1024**3, wal_bytes=2 * 1024**3, writer_delay_ms=10, vacuums=True
            )
        )
        == []
    )


def test_a_server_as_it_comes_makes_webhooks_wait() -> None:
    found = list(
        check_housekeeping(
            buffers_bytes=128 * 1024**2, wal_bytes=1024**3, writer_delay_ms=200, vacuums=True
        )
    )
    assert [finding.urgency for finding in found] == [Urgency.HUMAN] * 3
    assert "shared_buffers is 128 MB" in found[0].text
    assert "max_wal_size is 1024 MB" in found[1].text
    assert "wal_writer_delay is 200 ms" in found[2].text


def test_a_server_that_takes_no_dead_rows_away_fails() -> None:
    (finding,) = check_housekeeping(
        buffers_bytes=1024**3, wal_bytes=2 * 1024**3, writer_delay_ms=10, vacuums=False
    )
    assert finding.urgency is Urgency.NOW


def test_a_large_database_with_frequent_checkpoints_writes_whole_pages_too_often() -> None:
    gib = 1024**3
    size, timeout = check_checkpoints(
        size_bytes=40 * gib, wal_bytes=2 * gib, checkpoint_seconds=300
    )
    assert size.urgency is timeout.urgency is Urgency.HUMAN
    assert "max_wal_size is 2048 MB with a database of 40 GB" in size.text
    assert "checkpoint_timeout is 300 s" in timeout.text
    assert (
        list(check_checkpoints(size_bytes=40 * gib, wal_bytes=16 * gib, checkpoint_seconds=1800))
        == []
    )
    assert list(check_checkpoints(size_bytes=gib, wal_bytes=2 * gib, checkpoint_seconds=300)) == []
