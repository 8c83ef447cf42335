"""Each act of an operator, by HTTP, by command and by form: the same input leaves the same entry of
the log, which says who did it.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.openapi_document import calls
from tests.operation_table import operation_table
from tests.statesvc.api.test_dead_letter_replay import bury_messages
from tests.world.api import Api, Statement
from tests.world.console import ConsoleClient
from tests.world.database import Database
from tests.world.shell import Shell, use

WHY: Final = "a letter of theirs"
SCOPES: Final = "admin"
_CHANGING: Final = frozenset({"run", "revision", "replaces", "mapping", "version", "complete_at"})
"""Details that differ from time to time, whoever does it."""
Names = Mapping[str, Any]


@dataclass(frozen=True)
class World:
    api: Api
    scan: Statement


async def _carrier(_world: World) -> Names:
    return {}


async def _held(world: World) -> Names:
    await world.api.connection.execute("UPDATE statesvc.rollout SET hold = false")
    return {}


async def _dead_letter(world: World) -> Names:
    await world.api.connection.execute("DELETE FROM statesvc.dead_letter")
    await world.api.connection.execute("DELETE FROM statesvc.inbox")
    (letter,) = await bury_messages(world.api, f"broken {uuid4()}")
    return {"id": letter}


async def _parcel(world: World) -> Names:
    number = f"N{uuid4().hex[:10].upper()}"
    await world.api.carriers.push(world.scan(number, None))
    return {"number": number}


async def _made(world: World, method: str, path: str, **body: Any) -> Any:
    reply = await world.api.call(method, path, scopes=SCOPES, json=body or None)
    assert reply.status < 300, reply.body
    return reply.body


async def _parcel_on_hold(world: World) -> Names:
    parcel = await _parcel(world)
    held = {"carrier_id": "ups", "tracking_number": parcel["number"], "why": "before"}
    await _made(world, "POST", "/v1/legal-holds", **held)
    return parcel


async def _subscription(world: World) -> Names:
    url = "https://receiver.example/hook"
    return {"id": (await _made(world, "POST", "/v1/subscriptions", url=url))["id"]}


async def _paused(world: World) -> Names:
    subscription = await _subscription(world)
    await _made(world, "POST", f"/v1/subscriptions/{subscription['id']}/pause")
    return subscription


async def _carrier_without_quota(world: World) -> Names:
    usual = {"weight": 1, "in_flight_max": None, "why": "as before"}
    await _made(world, "PUT", "/v1/quotas/ups", **usual)
    return {}


async def _key(world: World) -> Names:
    made = await _made(world, "POST", "/v1/keys", name="desk", scopes=["read"])
    return {"id": made["key_id"]}


async def _notice(world: World) -> Names:
    cursor = await world.api.connection.execute(
        "INSERT INTO statesvc.notice (kind, target, created_at, details) VALUES"
        " ('subscription_failing', 'subscription x', statesvc.clock(), '{}') RETURNING notice_id"
    )
    ((notice_id,),) = await cursor.fetchall()
    return {"id": notice_id}


@dataclass(frozen=True, kw_only=True)
class Act:
    """One act by its three faces.

    Braces take the names that `prepare` answers, which makes a new subject each time.

    `form`: the path of its page, and what is filled in besides the why; `command`: its words.
    """

    operation_id: str
    prepare: Callable[[World], Awaitable[Names]]
    http: str
    body: Mapping[str, Any] = field(default_factory=dict)
    why_in_header: bool = False
    command: tuple[str, ...]
    form: str
    fields: Mapping[str, str] = field(default_factory=dict)


_NUMBER: Final = {"carrier_id": "ups", "tracking_number": "{number}"}
ACTS: Final = (
    Act(
        operation_id="change_rollout",
        prepare=_held,
        http="/v1/rollouts/ups",
        body={"hold": True},
        command=("rollout", "hold", "ups"),
        form="/console/carriers/ups/hold",
    ),
    Act(
        operation_id="change_quota",
        prepare=_carrier_without_quota,
        http="/v1/quotas/ups",
        body={"weight": 2.0, "in_flight_max": 7},
        command=("carriers", "quota", "ups", "--weight", "2", "--in-flight", "7"),
        form="/console/carriers/ups/quota",
        fields={"weight": "2", "in_flight_max": "7"},
    ),
    Act(
        operation_id="teach_code",
        prepare=_carrier,
        http="/v1/carriers/ups/mappings",
        body={
            "raw_type": "X",
            "raw_code": "9Z",
            "meaning": {"kind": "scan", "status": "delivery_attempted"},
            "force": True,
        },
        command=(
            "carriers",
            "map",
            "ups",
            "--type",
            "X",
            "--code",
            "9Z",
            "--status",
            "delivery_attempted",
            "--force",
            "--yes",
        ),
        form="/console/carriers/ups/teach",
        fields={
            "raw_type": "X",
            "raw_code": "9Z",
            "meaning.kind": "scan",
            "meaning.status": "delivery_attempted",
            "force": "1",
        },
    ),
    Act(
        operation_id="discard_dead_letter",
        prepare=_dead_letter,
        http="/v1/dead-letters/{id}/discard",
        command=("dead-letters", "discard", "{id}"),
        form="/console/dead-letters/{id}/discard",
    ),
    Act(
        operation_id="discard_dead_letters",
        prepare=_dead_letter,
        http="/v1/dead-letters/discard",
        body={"carrier_id": "ups"},
        command=("dead-letters", "discard", "--carrier", "ups"),
        form="/console/dead-letters/discard",
        fields={"carrier_id": "ups"},
    ),
    Act(
        operation_id="replay_dead_letter",
        prepare=_dead_letter,
        http="/v1/dead-letters/{id}/replay",
        command=("dead-letters", "replay", "{id}"),
        form="/console/dead-letters/{id}/replay",
    ),
    Act(
        operation_id="create_api_key",
        prepare=_carrier,
        http="/v1/keys",
        body={"name": "night shift", "scopes": ["read", "ops"], "owner": "shop"},
        why_in_header=True,
        command=(
            "keys",
            "create",
            "--name",
            "night shift",
            "--scopes",
            "read,ops",
            "--owner",
            "shop",
        ),
        form="/console/keys/create",
        fields={"name": "night shift", "scopes": "read, ops", "owner": "shop"},
    ),
    Act(
        operation_id="revoke_api_key",
        prepare=_key,
        http="/v1/keys/{id}",
        why_in_header=True,
        command=("keys", "revoke", "{id}"),
        form="/console/keys/{id}/revoke",
    ),
    Act(
        operation_id="mark_notice_seen",
        prepare=_notice,
        http="/v1/notices/{id}/seen",
        why_in_header=True,
        command=("notices", "seen", "{id}"),
        form="/console/notices/{id}/seen",
    ),
    Act(
        operation_id="place_legal_hold",
        prepare=_parcel,
        http="/v1/legal-holds",
        body=_NUMBER,
        command=("legal-hold", "place", "ups", "{number}"),
        form="/console/shipments/ups/{number}/hold",
    ),
    Act(
        operation_id="release_legal_hold",
        prepare=_parcel_on_hold,
        http="/v1/legal-holds/release",
        body=_NUMBER,
        command=("legal-hold", "release", "ups", "{number}"),
        form="/console/shipments/ups/{number}/release-hold",
    ),
    Act(
        operation_id="erase_shipment",
        prepare=_parcel,
        http="/v1/shipments/ups/{number}/erase",
        command=("erase", "ups", "{number}"),
        form="/console/shipments/ups/{number}/erase",
    ),
    Act(
        operation_id="pause_subscription",
        prepare=_subscription,
        http="/v1/subscriptions/{id}/pause",
        why_in_header=True,
        command=("subscriptions", "pause", "{id}"),
        form="/console/subscriptions/{id}/pause",
    ),
    Act(
        operation_id="resume_subscription",
        prepare=_paused,
        http="/v1/subscriptions/{id}/resume",
        why_in_header=True,
        command=("subscriptions", "resume", "{id}"),
        form="/console/subscriptions/{id}/resume",
    ),
    Act(
        operation_id="change_subscription",
        prepare=_subscription,
        http="/v1/subscriptions/{id}",
        body={"rate_per_second": 2.5, "statuses": ["delivered"]},
        why_in_header=True,
        command=(
            "subscriptions",
            "change",
            "{id}",
            "--rate-per-second",
            "2.5",
            "--status",
            "delivered",
        ),
        form="/console/subscriptions/{id}/change",
        fields={
            "url": "https://receiver.example/hook",
            "rate_per_second": "2.5",
            "statuses": "delivered",
            "parcels": "all",
            "payload": "thin",
            "coalesce": "1",
        },
    ),
    Act(
        operation_id="delete_subscription",
        prepare=_subscription,
        http="/v1/subscriptions/{id}",
        why_in_header=True,
        command=("subscriptions", "delete", "{id}"),
        form="/console/subscriptions/{id}/delete",
    ),
    Act(
        operation_id="rotate_subscription_secret",
        prepare=_subscription,
        http="/v1/subscriptions/{id}/rotate-secret",
        why_in_header=True,
        command=("subscriptions", "rotate-secret", "{id}"),
        form="/console/subscriptions/{id}/rotate-secret",
    ),
)

ELSEWHERE: Final[Mapping[str, str]] = {
    "change_expectations": (
        "its form and its command state hours by their names: tests/statesvc/cli and console"
        " compare the rules"
    ),
    "replay_dead_letters": (
        "tests/statesvc/cli, console, tests/acceptance/test_replay.py: its entries count what"
        " workers did meanwhile"
    ),
    "renormalize_code_mapping": (
        "tests/addons/mappings/test_code_mapping_commands.py: its entry counts what was read"
    ),
    "replay_subscription": (
        "tests/statesvc/api/test_subscription_replay.py: its entry counts what was sent"
    ),
    "resend_notification": (
        "tests/statesvc/api/test_sent_notifications.py: its entry names the notification"
    ),
    "create_portal_link": (
        "tests/statesvc/api/subscriptions and tests/addons/console/test_portal.py: its entry holds"
        " when it expires"
    ),
    "create_subscription": (
        "tests/addons/console/test_subscription_screens.py and statesvc/cli/test_remote_calls.py:"
        " made for a key's owner"
    ),
    "test_subscription": "tests/statesvc/subscriptions: its entry says what the receiver answered",
}
"""Acts whose entry is compared in another place."""
OTHER_WORDS: Final[Mapping[str, str]] = {
    "teach_code": "each answer names the next revision",
    "discard_dead_letter": "the command takes several, and counts them",
    "replay_dead_letter": "as discard_dead_letter",
    "erase_shipment": "the served API has a place for tombstones, the command's settings have none",
    "revoke_api_key": "as erase_shipment",
}
"""Acts whose command prints what the page does not show."""
NOT_BY_ALL: Final[Mapping[str, str]] = {
    "renormalize_carrier": (
        "no form: a whole history takes hours; HTTP and command"
        " (tests/addons/mappings/test_code_mapping_commands.py)"
    ),
    "put_subscription": "HTTP only: a program that keeps the id and the secret it chose",
    "put_subscription_secret": "HTTP only, as put_subscription",
    "set_shipment_references": "HTTP only: the shop's program attaches them",
    "await_shipment": "HTTP only: the shop's program waits for its parcels",
    "stop_awaiting_shipment": "HTTP only, as await_shipment",
}
NO_ACTS: Final[Mapping[str, str]] = {
    "submit_events": "ingest, no act of an operator",
    "make_shipment_evidence": "answers a document; the reading is on record",
    "preview_code_mapping": "changes nothing",
    "look_up_shipments": "changes nothing",
    "preview_expectations": "changes nothing",
    "create_stream_ticket": "opens a stream",
}

HTTP_ALONE: Final[Mapping[str, str]] = {
    "receive_webhook": (
        "a carrier's push: its body is read under the intake's own limits, and is acknowledged by"
        " group commit"
    ),
    "issue_webhook_token": "for carriers that authenticate with OAuth before they push",
    "submit_events": "intake, as a webhook: one event or many lines, read by its media type",
    "stream_transitions": "an answer without an end",
    "check_alive": "the process about itself, for who supervises it",
    "check_ready": "as check_alive",
}
"""Calls whose handlers read the request or write the response themselves: no page and
no command makes them.
"""


def test_each_call_is_an_operation_or_says_why_not() -> None:
    assert {route.operation.operation_id for route in calls() if route.run is None} == set(
        HTTP_ALONE
    )


def test_each_call_that_changes_something_is_compared_or_says_why_not() -> None:
    changing = {
        operation_id
        for operation_id, listed in operation_table().items()
        if not listed["where"].startswith("GET")
    }
    told = [*(act.operation_id for act in ACTS), *ELSEWHERE, *NOT_BY_ALL, *NO_ACTS]
    assert sorted(told) == sorted(set(told))
    assert set(told) == changing


@pytest.fixture
def here(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands on the machine of the served API."""
    use(database, monkeypatch)
    monkeypatch.setenv("STATESVC_BACKUP_DAYS", "7")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.operation_id)
async def test_three_faces_leave_the_same_entry_and_say_the_same(
    act: Act, console: ConsoleClient, shell: Shell, scan: Statement
) -> None:
    api, world = console.api, World(console.api, scan)
    where = operation_table()[act.operation_id]["where"].split()[0]

    key = await api.key(SCOPES)
    names = await act.prepare(world)
    before = await _newest(api)
    body = json.loads(_filled(json.dumps(act.body), names))
    why: dict[str, Any] = (
        {"headers": {"Statesvc-Why": WHY}, **({"json": body} if body else {})}
        if act.why_in_header
        else {"json": {**body, "why": WHY}}
    )
    reply = await api.call(where, _filled(act.http, names), scopes=SCOPES, **why)
    assert reply.status < 300, reply.body
    by_http = await _entries(api, before, names)

    names = await act.prepare(world)
    before = await _newest(api)
    printed = await shell(*(_filled(word, names) for word in act.command), "--why", WHY)
    said = [_general(line, names) for line in printed.splitlines()]
    by_command = await _entries(api, before, names)

    names = await act.prepare(world)
    await console.log_in(SCOPES, may_change="on")
    before = await _newest(api)
    shown = _general(await console.act(_filled(act.form, names), why=WHY, **act.fields), names)
    by_form = await _entries(api, before, names)

    assert by_http, "an act without an entry"
    if act.operation_id not in OTHER_WORDS:
        assert [line for line in said if line not in shown] == []
    assert [entry for _, entry in by_command] == [entry for _, entry in by_http]
    assert [entry for _, entry in by_form] == [entry for _, entry in by_http]
    holder = f"key:{key.split('_')[1]}"
    assert {actor for actor, _ in by_http} == {actor for actor, _ in by_form} == {holder}
    assert all(actor.startswith("cli:") for actor, _ in by_command)


def _general(text: str, names: Names) -> str:
    """Replace the names of the subject, which each face has another of."""
    for name, given in names.items():
        text = re.sub(rf"\b{re.escape(str(given))}\b", f"<{name}>", text)
    text = re.sub(r"\b(ss|whsec)_[\w+/=-]+", "<secret>", " ".join(text.split()))
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", text)


def _filled(text: str, names: Names) -> str:
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


async def _newest(api: Api) -> int:
    ((newest,),) = await (
        await api.connection.execute("SELECT coalesce(max(batch_id), 0) FROM statesvc.action")
    ).fetchall()
    return int(newest)


async def _entries(api: Api, after: int, names: Names) -> list[tuple[str, Any]]:
    """Return who, and the rest of each entry, with the subject by its name and without what
    changes from time to time.
    """
    cursor = await api.connection.execute(
        "SELECT convert_from(canonical, 'UTF8') FROM statesvc.action WHERE batch_id > %s ORDER BY"
        " batch_id, ordinal",
        (after,),
    )
    return [
        _without_names(json.loads(canonical), names) for (canonical,) in await cursor.fetchall()
    ]


def _without_names(entry: Any, names: Names) -> tuple[str, Any]:
    def plain(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        for name, given in names.items():
            value = re.sub(rf"\b{given}\b", f"<{name}>", value)
        return re.sub(
            r"(?<=key:)[0-9a-f]{12}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>", value
        )

    details = {
        name: plain(value) for name, value in entry["details"].items() if name not in _CHANGING
    }
    return entry["actor"], [entry["verb"], plain(entry["target"]), details]
