"""The generated calls of the Python client against a real service: a caller's
journey, then every operation.
"""

import importlib
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import httpx
import pytest
from psycopg import AsyncConnection

from statesvc.api.call_examples import call_examples
from statesvc.health.notices import Notice, NoticeKind, write_notices
from tests.acceptance.processes import BOOTSTRAP_KEY, UPS_SECRET, Service
from tests.acceptance.stories import ups_alert
from tests.acceptance.test_restore import sealed
from tests.call_examples import ExampleRecorder, places
from tests.clients.installed_client import CLIENTS
from tests.openapi_document import document

NUMBER = "1ZTEST000300000011"
UNKNOWN_CODE = "ZZ9"
CLIENT = "a-client:its-credential"


class GeneratedClient:
    """Calls operations by their names, as the document has them."""

    def __init__(
        self,
        package: ModuleType,
        described: dict[str, Any],
        service: Service,
        recorder: ExampleRecorder,
    ) -> None:
        self._package = package
        self.recorder = recorder
        self.service = service
        self._modules = {
            call[
                "operationId"
            ]: f"{package.__name__}.api.{call['tags'][0].replace(' ', '_')}.{call['operationId']}"
            for calls in described["paths"].values()
            for call in calls.values()
        }
        self.client = importlib.import_module(f"{package.__name__}.client").AuthenticatedClient(
            base_url=service.api.url,
            token=BOOTSTRAP_KEY,
            raise_on_unexpected_status=True,
            timeout=httpx.Timeout(30),
            httpx_args={"event_hooks": {"response": [recorder]}},
        )
        self.never_called = set(self._modules)

    def module(self, operation_id: str) -> ModuleType:
        self.never_called.discard(operation_id)
        return importlib.import_module(self._modules[operation_id])

    def model(self, name: str, /, **members: Any) -> Any:
        return getattr(importlib.import_module(f"{self._package.__name__}.models"), name).from_dict(
            members
        )

    async def __call__(self, operation_id: str, *path: Any, status: int = 200, **given: Any) -> Any:
        """Call an operation, and return what the answer was read as; None where it is no JSON."""
        answer = await self.module(operation_id).asyncio_detailed(
            *path, client=self.client, **given
        )
        assert answer.status_code == status, (
            operation_id,
            answer.status_code,
            answer.content[:500],
        )
        if (
            answer.content
            and "json" in answer.headers["content-type"]
            and answer.parsed is not None
        ):
            # what it read is what was sent: no member was lost or turned into something else
            sent = json.loads(answer.content)
            assert _plain(answer.parsed.to_dict()) == _plain(sent), operation_id
        return answer.parsed


def _plain(value: Any) -> Any:
    """Convert instants, which the client writes as Python does."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    try:
        return (
            datetime.fromisoformat(value) if isinstance(value, str) and len(value) > 18 else value
        )
    except ValueError:
        return value


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document()


@pytest.fixture
def package(installed_client: Path) -> ModuleType:
    assert installed_client.is_dir()
    return importlib.import_module("statesvc_client.core")


@pytest.fixture
async def call(
    service_maker: Callable[..., Awaitable[Service]],
    package: ModuleType,
    described: dict[str, Any],
    tmp_path: Path,
) -> Any:
    async with await service_maker(
        tmp_path, {"STATESVC_WEBHOOK_SECRET_UPS": f"{UPS_SECRET},{CLIENT}"}
    ) as service:
        await service.start("api", "worker", "sealer")
        served = await (await service.session.get(f"{service.api.url}/openapi.json")).json()
        assert served == json.loads(json.dumps(described)), (
            "tests/openapi_document.py leaves calls out"
        )
        assert served == json.loads((CLIENTS / "openapi.json").read_text()), "run `make client`"
        client = GeneratedClient(package, served, service, ExampleRecorder(described))
        async with client.client:
            yield client


async def test_a_caller_finds_its_parcel_and_then_calls_everything(call: Any) -> None:
    await the_journey(call)
    await what_is_on_record(call)
    await what_operators_do(call)
    await what_subscribers_do(call)
    await the_end(call)
    assert call.never_called == set()
    assert places(call.recorder.stored()) == places(call_examples()), (
        "run python -m tests.call_examples"
    )


async def the_journey(call: Any) -> None:
    """Push events in; read list, state and history."""
    event = {
        "carrier_id": "ups",
        "event_id": "S-1",
        "tracking_number": NUMBER,
        "occurred_at": "2026-05-01T10:00:00+02:00",
    }
    stated = call.model(
        "CanonicalEvent",
        **event,
        status="picked_up",
        location={"city": "Reno", "country": "US"},
        signed_by="A. Person",
    )
    assert (await call("submit_events", body=stated, status=201)).verdict == "appended"
    assert (await call("submit_events", body=stated)).verdict == "duplicate"
    lines = json.dumps(
        event
        | {"event_id": "S-2", "status": "in_transit", "occurred_at": "2026-05-02T09:00:00+02:00"}
    ).encode()
    lines += b"\n" + json.dumps(event | {"event_id": "S-3", "status": "teleported"}).encode()
    types = importlib.import_module("statesvc_client.core.types")
    verdicts = await call("submit_events", body=types.File(payload=lines))
    assert [line.verdict for line in verdicts.results] == ["appended", "invalid"]

    (found,) = (await call("list_shipments", tracking_number=f" {NUMBER.lower()} ")).items
    assert (found.carrier_id, found.status, found.version) == ("ups", "in_transit", 2)
    by_number = await call(
        "get_shipment", found.carrier_id, found.tracking_number, include="personal"
    )
    by_id = await call("get_shipment_by_id", found.shipment_id)
    assert by_number.shipment_id == by_id.shipment_id == found.shipment_id
    history = await call("get_shipment_history", "ups", NUMBER)
    assert [
        (event.event_id, event.status.value, event.location.city) for event in history.items
    ] == [
        ("S-1", "picked_up", "Reno"),
        ("S-2", "in_transit", None),
    ]
    assert history.items[0].occurred_at == datetime(2026, 5, 1, 8, tzinfo=UTC)
    references = call.model("References", order_id="Order-7", metadata={"shop": "eu"})
    await call("set_shipment_references", "ups", NUMBER, body=references)
    assert (await call("get_shipment_references", "ups", NUMBER)).order_id == "Order-7"
    assert [
        each.shipment_id for each in (await call("list_shipments", reference="ORDER-7")).items
    ] == [found.shipment_id]
    asked = call.model("NumbersToLookUp", numbers=[{"tracking_number": NUMBER}])
    (looked_up,) = (await call("look_up_shipments", body=asked)).items
    assert [each.shipment_id for each in looked_up.shipments] == [found.shipment_id]
    awaited = await call(
        "await_shipment", "ups", "1ZSOON", body=call.model("AwaitedWithin", hours=48)
    )
    assert [one.number for one in (await call("list_awaited_numbers")).items] == [awaited.number]
    assert awaited.due_at - awaited.awaited_at == timedelta(hours=48)
    assert (await call("get_shipment", "ups", "1ZSOON")).version == 0
    await call("stop_awaiting_shipment", "ups", "1ZSOON", status=HTTPStatus.NO_CONTENT)
    missing = await call("get_shipment", "ups", "1ZNEVER", status=HTTPStatus.NOT_FOUND)
    assert (missing.code.value, type(missing).__name__) == ("not_found", "Problem")


async def what_is_on_record(call: Any) -> None:
    alert = ups_alert(NUMBER, f"I/{UNKNOWN_CODE}", day=3, minute=600).body
    body = call.model("ReceiveWebhookJsonBody", **json.loads(alert))
    pushed = await call.module("receive_webhook").asyncio_detailed(
        "ups", client=call.client, body=body
    )
    assert pushed.headers["Statesvc-Message-Id"] == json.loads(pushed.content)["message_id"]
    for each in range(2):
        await call.service.webhook("ups", b"{ what no carrier says %d" % each)
    await call.service.drained()
    client_id, _, client_secret = CLIENT.partition(":")
    await call(
        "issue_webhook_token",
        "ups",
        body=call.model("TokenRequest", client_id=client_id, client_secret=client_secret),
    )
    audit = await call("get_shipment_audit", "ups", NUMBER)
    await call("get_message", audit.events[0].message_id)
    await sealed(call.service)
    await call("get_shipment_evidence", "ups", NUMBER)
    await call(
        "make_shipment_evidence",
        "ups",
        NUMBER,
        body=call.model("MerchantStatement", case="dispute-1"),
    )
    feed = await call("read_feed", limit=10)
    await call("prove_inclusion", index=feed.items[0].index)
    await call("get_checkpoint")
    await call("prove_consistency", from_=1)
    await call("list_checkpoint_keys")
    await call("list_transitions")
    await call("create_stream_ticket", body=call.model("TicketRequest"), status=201)
    # the client reads no endless answer
    stream = call.module("stream_transitions")._get_kwargs(after="-1")  # noqa: SLF001
    async with call.client.get_async_httpx_client().stream(**stream) as answer:
        assert answer.status_code == HTTPStatus.OK
        assert await anext(answer.aiter_lines()) != ""


async def what_operators_do(call: Any) -> None:
    dead_letter, other = (await call("list_dead_letters", kind="message")).items
    await call("list_dead_letter_groups")
    await call("get_dead_letter", dead_letter.dead_letter_id)
    await call("replay_dead_letters", body=call.model("ReplayMany", dry_run=True, carrier_id="ups"))
    discard = call.model("DiscardMany", dry_run=True, carrier_id="ups", why="no carrier said it")
    assert (await call("discard_dead_letters", body=discard)).discarded == 0
    await call("replay_dead_letter", dead_letter.dead_letter_id, body=call.model("ReplayOne"))
    await call(
        "discard_dead_letter",
        other.dead_letter_id,
        body=call.model("Discard", why="no carrier said it"),
    )
    code = {
        "raw_type": "I",
        "raw_code": UNKNOWN_CODE,
        "meaning": {"kind": "scan", "status": "delivery_attempted"},
    }
    assert [unmapped.raw_code for unmapped in (await call("list_unmapped_codes")).items] == [
        UNKNOWN_CODE
    ]
    await call("list_unmapped_code_samples", carrier_id="ups", raw_type="I", raw_code=UNKNOWN_CODE)
    await call("preview_code_mapping", "ups", body=call.model("PreviewRequest", **code))
    taught = await call(
        "teach_code",
        "ups",
        body=call.model("TeachRequest", **code, why="their list", replaces=0),
        status=201,
    )
    await call("list_code_mappings", "ups")
    await call("list_mapped_codes")
    await call("get_code_mapping", "ups", taught.revision)
    await call(
        "renormalize_code_mapping", "ups", taught.revision, body=call.model("RenormalizeRequest")
    )
    await call("renormalize_carrier", "ups", body=call.model("RenormalizeCarrier", dry_run=True))
    await call(
        "change_rollout", "ups", body=call.model("RolloutChange", hold=False, why="nothing to hold")
    )
    await call("get_rollout", "ups")
    await call("list_rollouts")
    await call("get_status")
    made = await call(
        "create_api_key",
        status=201,
        body=call.model("KeyRequest", name="night shift", scopes=["ops", "read"], owner="acme"),
    )
    await call("list_api_keys")
    await call("revoke_api_key", made.key_id)
    await call("list_rollout_diffs", "ups")
    rules = {"stalled": {"in_transit": 96}, "overdue": None}
    await call("preview_expectations", "ups", body=call.model("RulesRequest", rules=rules))
    await call(
        "change_expectations",
        "ups",
        body=call.model("RulesStatement", rules=rules, why="their contract", replaces=0),
    )
    assert (await call("get_expectations", "ups")).in_effect.stalled["in_transit"] == 96
    assert [each.carrier_id for each in (await call("list_expectations")).items] == ["*", "ups"]
    assert (await call("report_promises")).groups == []
    assert (await call("list_late_parcels")).items == []
    await call("export_promises")
    await call("change_quota", "ups", body=call.model("QuotaChange", weight=2.0))
    await call("get_quota", "ups")
    await call("list_quotas")
    await call("get_queue")
    await call("list_workers")
    await call("list_actions")
    await call("list_notices")
    notice = Notice(kind=NoticeKind.FAILING, target="subscription", details={"failures": 3})
    async with await AsyncConnection.connect(
        call.service.service_dsn, autocommit=True
    ) as connection:
        await write_notices(connection, [notice], now=datetime.now(UTC))
    await call("list_notices")
    await call("mark_notice_seen", 1)


async def what_subscribers_do(call: Any) -> None:
    url = f"{call.service.api.url}/livez"
    made = await call(
        "create_subscription",
        body=call.model("SubscriptionInput", url=url, statuses=["delivered"]),
        status=201,
    )
    await call("list_subscriptions")
    await call("create_portal_link", body=call.model("PortalLinkRequest"), status=201)
    await call("get_subscription", made.id)
    changed = await call(
        "change_subscription", made.id, body=call.model("SubscriptionChange", rate_per_second=5.0)
    )
    assert changed.statuses == ["delivered"], "what is left out stays"
    await call("pause_subscription", made.id)
    await call("resume_subscription", made.id)
    await call("rotate_subscription_secret", made.id)
    secret = "whsec_" + "A" * 32
    await call("put_subscription_secret", made.id, body=call.model("ChosenSecret", secret=secret))
    chosen = uuid4(), call.model("ChosenSubscription", url=url, secret=secret)
    for status in (201, 200):
        await call("put_subscription", chosen[0], body=chosen[1], status=status)
    await call("test_subscription", made.id, body=call.model("TestRequest"))
    await call("list_attempts", made.id)
    wish = call.model("ReplayInput", since=datetime.now(UTC).isoformat(), dry_run=True)
    await call("replay_subscription", made.id, body=wish)
    # what came before it: each change is written for it
    await call(
        "replay_subscription",
        chosen[0],
        body=call.model("ReplayInput", since="2020-01-01T00:00:00Z"),
    )
    told = await call("list_notifications", chosen[0])
    await call("get_notification", chosen[0], told.items[0].webhook_id)
    await call("resend_notification", chosen[0], told.items[0].webhook_id)
    await call("delete_subscription", made.id, status=204)


async def the_end(call: Any) -> None:
    why = {"carrier_id": "ups", "tracking_number": NUMBER, "why": "case 7"}
    await call("place_legal_hold", body=call.model("LegalHoldPlacement", **why), status=201)
    await call("list_legal_holds")
    await call("release_legal_hold", body=call.model("LegalHoldRelease", **why))
    await call("erase_shipment", "ups", NUMBER, body=call.model("ErasureRequest", why="asked to"))
    await call("check_alive")
    await call("check_ready")
