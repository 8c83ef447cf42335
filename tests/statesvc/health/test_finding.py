"""Findings, and the rows that they are made from."""

from dataclasses import replace
from typing import Any

from psycopg import AsyncConnection

from statesvc.api.service_status import read_status
from statesvc.cli.doctor.checks import check_database
from statesvc.health.finding import Finding, Urgency, worst_first
from statesvc.health.ingest_report import MINUTE_SECONDS, LastMinute
from statesvc.health.storable import read_lock_fault, storage_findings
from tests.statesvc.conftest import HandClock
from tests.world.waiting import until

DEAD = Finding(urgency=Urgency.NOW, about="processes", text="no worker", page="RoleDown")
WAITS = [
    Finding(urgency=Urgency.NOW, about=name, text="waits", page="Lag", cause="RoleDown")
    for name in ("fedex", "ups")
]
NOTE = Finding(urgency=Urgency.NOTE, about="gls", text="on hold", page="CarrierHeld")
OTHER = Finding(urgency=Urgency.NOW, about="pushes", text="refused", page="AckAvailability")


def test_the_worst_stands_first_and_what_follows_from_it_right_behind_it() -> None:
    assert worst_first([NOTE, *WAITS, DEAD, OTHER]) == [DEAD, *WAITS, OTHER, NOTE]


def test_two_findings_of_one_cause_are_followed_once() -> None:
    other = Finding(urgency=Urgency.NOW, about="processes", text="no sealer", page="RoleDown")
    assert worst_first([*WAITS, DEAD, other]) == [DEAD, *WAITS, other]


def test_what_follows_from_nothing_that_was_found_stands_for_itself() -> None:
    assert worst_first([NOTE, *WAITS]) == [
        *(replace(finding, cause=None) for finding in WAITS),
        NOTE,
    ]


def test_pushes_are_counted_for_a_minute() -> None:
    clock = HandClock()
    minute = LastMinute(now=clock)
    assert minute.counts() == (0, {})
    for second in range(120):
        clock.seconds = second
        minute.acknowledged()
        if second < 30:
            minute.refused("storage_low")
    acknowledged, refused = minute.counts()
    assert MINUTE_SECONDS - 2 <= acknowledged <= MINUTE_SECONDS + 2
    assert refused == {}
    clock.seconds += MINUTE_SECONDS
    assert minute.counts() == (0, {})


async def test_who_locks_the_inbox_is_named_by_readiness_and_doctor(
    database: Any, service: AsyncConnection[Any]
) -> None:
    async with await AsyncConnection.connect(database.owner_dsn) as other:
        await other.execute("LOCK TABLE statesvc.inbox IN ACCESS EXCLUSIVE MODE")
        found = await until(lambda: storage_findings(service, migrations=()))
        doctor = await read_lock_fault(service)
        status = await read_status(service)
        named = (
            f"statesvc.inbox is locked by pid {other.info.backend_pid} (statesvc_owner, LOCK TABLE,"
            " for "
        )
        assert named in found[0].text
        assert named in (doctor or "")
        assert named in status.troubles[0].text
        unread = {each.about: each.text for each in status.troubles if "not read: " in each.text}
        assert {"queue", "readers"} == unread.keys()
        assert "lock timeout" in unread["queue"]
        assert status.sample.size_bytes
        assert status.sample.promises
    assert await storage_findings(service, migrations=()) == []
    assert not [each for each in (await read_status(service)).troubles if "not read" in each.text]


async def test_an_invalid_index_is_named(
    database: Any, service: AsyncConnection[Any], owner: AsyncConnection[Any]
) -> None:
    async with await AsyncConnection.connect(database.superuser_dsn, autocommit=True) as superuser:
        await superuser.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid ="
            " 'statesvc.inbox_token'::regclass"
        )
    found = [finding.text async for finding in check_database(service)]
    assert [
        each.text for each in (await read_status(service)).troubles if "is invalid" in each.text
    ]
    (named,) = [
        text for text in found if "statesvc.inbox_token of statesvc.inbox is invalid" in text
    ]
    await owner.execute(named.rsplit(", else ", 1)[1].encode())
    found = [finding.text async for finding in check_database(service)]
    assert not [text for text in found if "is invalid" in text]
