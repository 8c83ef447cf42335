"""Commands of the person on call: status first, then what it leads to."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg import AsyncConnection, sql

from events.identity.recipes import number_of
from statesvc.background.duration import duration
from statesvc.shipments.references import AttachedTo, References, attach_references
from tests.world.database import Database
from tests.world.log_builder import LogBuilder
from tests.world.shell import Shell, use

ONE = UUID(int=0xA << 124)


async def _run_roles(owner: AsyncConnection[Any]) -> None:
    await owner.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, started_at,"
        " last_seen_at) SELECT r, r, 'h', 1, '0', statesvc.clock(), statesvc.clock() FROM"
        " unnest(ARRAY['ingress', 'api', 'worker', 'notifier', 'sealer']) r"
    )


async def _subscribe(owner: AsyncConnection[Any], one: UUID, **columns: object) -> None:
    await owner.execute(
        "INSERT INTO statesvc.subscription (subscription_id, created_at, created_by, owner, url,"
        " sealed_secrets, disabled_at, disabled_why) VALUES (%s, statesvc.clock(), 'x', 'x',"
        " 'https://receiver.example/hook', '{}', %s, %s)",
        (one, columns.get("disabled_at"), columns.get("disabled_why")),
    )


async def _fail(owner: AsyncConnection[Any], one: UUID, *, hours: int) -> None:
    await owner.execute(
        "INSERT INTO statesvc.subscription_failing (subscription_id, since, last_at, failures,"
        " last_outcome, last_status_code) VALUES (%s, statesvc.clock() - make_interval(hours =>"
        " %s), statesvc.clock(), 40, 'refused', 500)",
        (one, hours),
    )


async def test_a_service_that_is_well_says_so_in_one_line(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await _run_roles(owner)
    assert "all is well" in await here("status")
    told = await here.json("status")
    assert (told["needs_human"], told["troubles"]) == (False, [])


async def test_what_was_promised_is_accounted_for_in_words(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await _run_roles(owner)
    assert "Messages: not counted yet" in await here("status")
    await owner.execute(
        "INSERT INTO statesvc.reconciled VALUES ('settled', 0, 60, statesvc.clock(), 9302, 0, 0,"
        " NULL)"
    )
    assert "Messages: all 9,302 of 8 days accounted for (checked " in await here("status")
    await owner.execute(
        "INSERT INTO statesvc.reconciled VALUES ('settled', 60, 120, statesvc.clock(), 10, 3, 2,"
        " NULL)"
    )
    assert "Messages: 9,307 of 9,312 of 8 days done, 3 wait, 2 MISSING (checked " in await here(
        "status", exit_code=1
    )


async def test_status_names_what_is_wrong_the_worst_first_and_fails(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await _run_roles(owner)
    await owner.execute("DELETE FROM statesvc.worker WHERE role = 'notifier'")
    await owner.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups'), ('fedex')")
    await owner.execute(
        "INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id,"
        " sealed_key) SELECT gen_random_uuid(), statesvc.clock(), statesvc.clock() - interval '5"
        " minutes', 1, c, '' FROM unnest(ARRAY['ups', 'fedex']) c"
    )
    await owner.execute(
        "INSERT INTO statesvc.rollout (carrier_id, hold, changed_at, changed_by) VALUES ('fedex',"
        " true, statesvc.clock(), 'me')"
    )
    await owner.execute(
        "INSERT INTO statesvc.dead_letter (kind, cause, carrier_id, created_at) VALUES ('message',"
        " 'unreadable', 'ups', statesvc.clock())"
    )
    await _subscribe(owner, ONE)
    await _fail(owner, ONE, hours=3)
    await owner.execute(
        "UPDATE statesvc.subscription SET name = 'returns desk' WHERE subscription_id = %s", (ONE,)
    )
    await owner.execute(
        "INSERT INTO statesvc.reconciled VALUES ('settled', 0, 60, statesvc.clock(), 9, 0, 2, NULL)"
    )
    told = await _document(here)
    by_urgency = [trouble["urgency"] for trouble in told["troubles"]]
    assert by_urgency == sorted(by_urgency, key=["now", "human", "note"].index)
    said = {(trouble["about"], trouble["page"]): trouble["text"] for trouble in told["troubles"]}
    assert said["promises", "docs/runbook/PromiseBroken.md"].startswith("2 acknowledged messages")
    assert "no notifier" in said["processes", "docs/runbook/RoleDown.md"]
    assert "the first for 5 min" in said["ups", "docs/runbook/Lag.md"]
    assert "on hold" in said["fedex", "docs/runbook/CarrierHeld.md"]
    assert (
        "1 dead letter: body cannot be read (unreadable)"
        in said["dead letters", "docs/runbook/DeadLettersGrow.md"]
    )
    assert (
        "returns desk (receiver.example) has taken nothing for 3 h"
        in said["subscription a0000000", "docs/runbook/SubscriberFailing.md"]
    )


async def test_what_follows_from_a_dead_worker_stands_below_it_in_one_line(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await _run_roles(owner)
    await owner.execute("DELETE FROM statesvc.worker WHERE role = 'worker'")
    await owner.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups'), ('fedex'), ('gls')")
    await owner.execute(
        "INSERT INTO statesvc.inbox (message_id, received_at, available_at, body_bytes, carrier_id,"
        " sealed_key) SELECT gen_random_uuid(), statesvc.clock(), statesvc.clock() - interval '5"
        " minutes', 1, c, '' FROM unnest(ARRAY['ups', 'fedex', 'gls']) c"
    )
    worker, *carriers = (await _document(here))["troubles"]
    assert (worker["text"], worker["cause"]) == (
        "no worker was heard of within half a minute",
        None,
    )
    assert {one["cause"] for one in carriers} == {worker["page"]}
    lines = (await here("status", exit_code=1)).splitlines()[1:4]
    assert lines[0] == "NOW   processes  no worker was heard of within half a minute"
    assert lines[1].strip().startswith("so: fedex: 1 message waits, the first for 5 min")
    assert lines[1].endswith("(and gls, ups)")
    assert lines[2].strip() == "> statesvc runbook RoleDown"


async def test_the_kill_switch_is_named_with_who_turned_it_and_why(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await _run_roles(owner)
    await here("rollout", "hold", "all", "--why", "codes look wrong")
    (held,) = (await here.json("status"))["troubles"]
    assert (held["urgency"], held["about"], held["page"]) == (
        "note",
        "all carriers",
        "docs/runbook/CarrierHeld.md",
    )
    assert ": codes look wrong; no message waits" in held["text"]
    assert ", by cli:" in held["text"]


async def test_carriers_alone_lists_them(shell: Shell) -> None:
    assert await shell("carriers", "list") == await shell("carriers")


async def test_many_subscriptions_in_the_same_trouble_are_one_line(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await _run_roles(owner)
    for number in range(5):
        subscription_id = UUID(int=ONE.int + number)
        await _subscribe(owner, subscription_id)
        await _fail(owner, subscription_id, hours=number + 1)
    (one,) = (await _document(here))["troubles"]
    assert one["about"] == "subscriptions"
    assert one["text"].startswith(
        "5 are failing; the first of them: receiver.example has taken nothing for 5 h (40 tries"
        " failed"
    )
    assert one["subscription_state"] == "failing"
    await owner.execute(
        "UPDATE statesvc.subscription SET disabled_at = statesvc.clock() WHERE subscription_id"
        " = %s",
        (ONE,),
    )
    two = (await _document(here))["troubles"]
    assert [(each["subscription_state"], each["subscription_id"]) for each in two] == [
        ("failing", None),
        (None, str(ONE)),
    ]


async def _document(shell: Shell) -> Any:
    return await shell.json("status", exit_code=1)


async def test_a_carrier_that_fell_silent_is_named(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await _run_roles(owner)
    await owner.execute("INSERT INTO statesvc.lane (carrier_id) VALUES ('ups'), ('fedex')")
    await owner.execute(
        "INSERT INTO statesvc.ack_count SELECT c, date_trunc('minute', statesvc.clock() - interval"
        " '26 hours'), 'p', 100, 0, 0, statesvc.clock() - interval '26 hours' FROM"
        " unnest(ARRAY['ups', 'fedex']) c"
    )
    await owner.execute(
        "INSERT INTO statesvc.ack_count VALUES ('fedex', date_trunc('minute', statesvc.clock()),"
        " 'p', 1, 0, 0, statesvc.clock() - interval '1 minute')"
    )
    told = await _document(here)
    assert [(trouble["about"], trouble["page"]) for trouble in told["troubles"]] == [
        ("ups", "docs/runbook/CarrierSilent.md")
    ]


@pytest.mark.parametrize("wrong", ["zz", "", "a000000g"])
async def test_what_is_no_id_is_refused(shell: Shell, wrong: str) -> None:
    with pytest.raises(SystemExit):
        await shell("subscriptions", "show", wrong)


async def test_a_parcel_is_found_by_its_number_a_part_of_it_or_a_reference(
    here: Shell, event_log: LogBuilder
) -> None:
    number = "1Z5338FF0107231059"
    await event_log.parcel(number)
    for attached, order in ((number, "Order 7"), ("1Z9", "Order 9")):
        target = AttachedTo("ups", number_of("ups", attached))
        references = References(order_id=order)
        await attach_references(
            event_log.connection, event_log.keyring, target, references, actor="test", why={}
        )
    shown = await here.json("shipments", "show", "ups", number)
    assert shown["tracking_number"] == number
    for sought in (f" {number.lower()} ", number[-5:], f"*{number[-5:]}", number[:6], "order 7"):
        found = await here.json("shipments", "find", sought)
        assert shown["shipment_id"] in [each["shipment_id"] for each in found], sought
    assert shown["shipment_id"] in await here("shipments", "find", number, "-o", "wide")
    (awaited,) = await here.json("shipments", "find", "--reference", "order 9")
    assert (awaited["tracking_number"], awaited["version"]) == ("1Z9", 0)
    assert {each["carrier_id"] for each in await here.json("shipments", "list")} == {"ups"}
    assert len(await here.json("shipments", "history", "ups", number)) == shown["version"]
    for arguments, told in (
        (("find", "0NOTHING0"), "one that ends or begins so"),
        (("find", "--reference", "order 8"), "with this reference"),
        (("list", "--updated-after", "2999-01-01T00:00:00Z"), "no shipment fits"),
        (("show", "ups", "0NOTHING0"), "named this tracking number so far"),
    ):
        assert told in await here("shipments", *arguments, exit_code=1)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.25, "250 ms"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "59 min 59 s"),
        (7260, "2 h 1 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_are_said_in_two_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


async def test_status_names_workers_that_lack_the_version_of_the_rollout(
    owner: AsyncConnection[Any], here: Shell
) -> None:
    await _run_roles(owner)
    await owner.execute(
        "INSERT INTO statesvc.worker (worker_id, role, host, pid, version, normalizers, started_at,"
        " last_seen_at) VALUES ('new', 'worker', 'h', 2, '1', '{ups/1,ups/2}', statesvc.clock(),"
        " statesvc.clock())"
    )
    await owner.execute(
        "INSERT INTO statesvc.rollout (carrier_id, candidate, percent, changed_at, changed_by)"
        " VALUES ('ups', '2', 100, statesvc.clock(), 'me')"
    )
    (trouble,) = (await here.json("status", exit_code=1))["troubles"]
    assert (trouble["about"], trouble["page"]) == ("ups", "docs/runbook/WorkersOutdated.md")
    assert trouble["text"].startswith("1 of 2 workers lack version 2")
    assert trouble["text"].endswith(": worker")
    assert trouble["text"] in json.dumps(await here.json("doctor", exit_code=1)), (
        "the clock of the tests fails it"
    )
    # one that is gone, or a rollout that asks for nothing, is no trouble
    await owner.execute("UPDATE statesvc.rollout SET percent = 0")
    assert (await here.json("status"))["troubles"] == []
    await owner.execute("UPDATE statesvc.rollout SET percent = 100")
    await owner.execute(
        "UPDATE statesvc.worker SET stopping_at = statesvc.clock() WHERE worker_id = 'worker'"
    )
    assert (await here.json("status"))["troubles"] == []


@pytest.mark.parametrize(
    ("variable", "role"),
    [("STATESVC_LISTEN_URL", "owner_dsn"), ("STATESVC_OWNER_URL", "service_dsn")],
)
async def test_doctor_names_an_address_that_logs_in_as_the_wrong_role(
    database: Database, here: Shell, monkeypatch: pytest.MonkeyPatch, variable: str, role: str
) -> None:
    monkeypatch.setenv(variable, f"{getattr(database, role)} application_name=elsewhere")
    findings = await here.json("doctor", exit_code=1)
    assert [
        each["severity"] for each in findings if each["text"].startswith(f"{variable} logs in as")
    ] == ["fail"]


async def test_each_act_answers_with_a_document(
    here: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STATESVC_ARCHIVE_DIR", str(tmp_path))
    turned = ("--stable", "old@1", "--candidate", "1", "--percent", "5")
    for command, answer in (
        (
            ("carriers", "quota", "ups", "--weight", "2", "--why", "test"),
            {"carrier_id": "ups", "weight": 2.0, "in_flight_max": None},
        ),
        (
            ("rollout", "set", "ups", *turned, "--why", "test"),
            {"carrier_id": "ups", "percent": 5, "stable": "old@1"},
        ),
        (("migrate", "--check"), {"applied": [], "pending": []}),
        (("archive", "run"), {"archived": [], "bodies": 0, "refused": None}),
        (("archive", "verify"), {"files": 0, "months": 0, "faults": {}}),
        (("archive", "log", "--hot-months", "1", "--no-wait"), {"archived": []}),
    ):
        assert answer.items() <= (await here.json(*command)).items(), command
    listed = {each["carrier_id"]: each["weight"] for each in await here.json("carriers")}
    assert (listed["ups"], listed["fedex"]) == (2.0, 1.0)


async def test_status_names_the_database_once(service: AsyncConnection[None], here: Shell) -> None:
    name = service.info.dbname
    # nothing runs here, which needs a human
    out, err = await here.printed("status", exit_code=1)
    assert (out.count(name), err) == (1, "")
    _, err = await here.printed("queue")
    assert name in err


COMMANDS = (
    ("queue",),
    ("rollout", "hold", "ups", "--why", "codes look wrong"),
    ("rollout", "release", "all"),
    ("rollout", "show"),
)


@pytest.fixture(params=["the api is down", "the master key is away", "one connection is left"])
async def trouble(
    request: pytest.FixtureRequest,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: str,
) -> str:
    use(database, monkeypatch)
    if request.param == "the master key is away":
        monkeypatch.delenv("STATESVC_MASTER_KEY")
        monkeypatch.setenv("STATESVC_DATA_DIR", str(tmp_path))
    if request.param == "one connection is left":
        async with await AsyncConnection.connect(
            database.superuser_dsn, autocommit=True
        ) as connection:
            ((name,),) = await (await connection.execute("SELECT current_database()")).fetchall()
            await connection.execute(
                sql.SQL("ALTER DATABASE {} CONNECTION LIMIT 1").format(sql.Identifier(name))
            )
    return str(request.param)


@pytest.mark.usefixtures("trouble")
async def test_the_kill_switch_is_turned_all_the_same(shell: Shell) -> None:
    for command in COMMANDS:
        await shell(*command)
    # nothing runs here, which needs a human
    await shell("status", exit_code=1)
    done = await shell.json("actions", "list")
    assert [(each["verb"], each["target"]) for each in done] == [
        ("release", "carrier *"),
        ("hold", "carrier ups"),
    ]


async def test_a_drill_is_refused_while_nobody_would_take_over(here: Shell) -> None:
    await here(
        "rollout",
        "set",
        "ups",
        "--stable",
        "old@1",
        "--candidate",
        "1",
        "--percent",
        "5",
        "--why",
        "a share",
    )
    assert "no worker asked for old@1" in await here("rollout", "drill", "ups", exit_code=2)
    assert "percent    5" in await here("rollout", "show", "ups")
    done = await here("actions", "list", "--target", "carrier ups")
    assert "a share" in done
    assert "drill" not in done
