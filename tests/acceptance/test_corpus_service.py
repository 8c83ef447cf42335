"""Every real payload of a registered carrier, from the webhook to the history."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from events.carriers import CARRIERS
from events.crypto.keyring import Keyring
from events.errors import UnreadableMessageError
from events.event import Event
from events.identity.ids import carrier_code, identify, numbered
from statesvc.database.keyring_store import load_keyring, parse_master_keys
from statesvc.shipments.known_texts import KnownTexts
from tests.acceptance.corpus_folder import CORPUS, needs_corpus
from tests.acceptance.posting import post_webhook
from tests.acceptance.processes import MASTER_KEY, Service, running
from tests.events.carriers.test_corpus import is_judged

ServiceMaker = Callable[..., Any]
Shipment = tuple[str, str, str]


async def _keyring(service: Service) -> Keyring:
    async with await AsyncConnection.connect(service.service_dsn, autocommit=True) as connection:
        return await load_keyring(connection, parse_master_keys(MASTER_KEY))


def _ids(carrier_id: str, body: bytes, keyring: Keyring) -> list[Event]:
    """Return the identities of a payload's events, in its order."""
    carrier = CARRIERS[carrier_id]
    try:
        readings = carrier.normalizers[carrier.stable](body, datetime.now(UTC)).readings
    except UnreadableMessageError:
        return []
    return [
        identify(
            reading,
            carrier_id=carrier_id,
            digest=keyring.carrier_digest(carrier_id),
            allow_unnumbered=True,
        )
        for reading in readings
    ]


async def _history(service: Service, shipment: Shipment) -> list[dict[str, Any]]:
    carrier_id, number, discriminator = shipment
    items, cursor = [], ""
    while True:
        more = {"cursor": cursor} if cursor else {}
        status, page = await service.get(
            f"/v1/shipments/{carrier_id}/{number}/history",
            limit="200",
            **({"discriminator": discriminator} if discriminator else {}),
            **more,
        )
        assert status == 200, (carrier_id, page)
        items += page["items"]
        cursor = page["next_cursor"]
        if not cursor:
            return items


@needs_corpus
async def test_every_payload_of_the_corpus_shows_its_events_in_the_history(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    # epcis: one event names several shipments, so its events and the corpus' do not stand side by
    # side; test_corpus compares them
    documents = [
        document
        for document in json.loads((CORPUS / "expected.json").read_text("utf-8"))
        if document["carrier"] in CARRIERS
        and document["carrier"] != "epcis"
        and is_judged(document)
    ]
    service = await service_maker(tmp_path)
    async with running(service, "api", "worker"):
        keyring = await _keyring(service)

        documents_by_message: dict[str, dict[str, Any]] = {}

        async def post(document: dict[str, Any]) -> None:
            status, message_id = await post_webhook(
                service, document["carrier"], (CORPUS / document["path"]).read_bytes()
            )
            assert 200 <= status < 300, document["path"]
            documents_by_message[message_id] = document

        for start in range(0, len(documents), 8):
            await asyncio.gather(*map(post, documents[start : start + 8]))
        await service.drained()

        texts = KnownTexts(keyring)
        expected: dict[Shipment, dict[str, list[dict[str, Any]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for document in documents:
            events = _ids(document["carrier"], (CORPUS / document["path"]).read_bytes(), keyring)
            assert len(events) == len(document["events"]), document["path"]
            pairs = [
                pair
                for pair in zip(events, document["events"], strict=True)
                if pair[0].tracking_number
            ]
            for event, stated in pairs:
                shipment = (
                    document["carrier"],
                    numbered(
                        document["carrier"], event.tracking_number, event.discriminator
                    ).number,
                    event.discriminator,
                )
                expected[shipment][event.event_id].append(
                    {
                        **stated,
                        "code": texts.spelled_out(document["carrier"], carrier_code(event.raw)),
                    }
                )

        found = await service.rows(
            "SELECT carrier_id, number, discriminator FROM statesvc.shipment"
        )
        assert set(found) == set(expected)
        for shipment, events_by_id in expected.items():
            items = await _history(service, shipment)
            shown = {
                item["event_id"]: item for item in items if not item["event_id"].startswith("e1-")
            }
            assert set(shown) == set(events_by_id), shipment
            for event_id, statements in events_by_id.items():
                item = shown[event_id]
                assert item["carrier_code"] in {stated["code"] for stated in statements}
                statuses = {stated["status"] for stated in statements}
                assert (
                    None in statuses
                    or (item["status"] if item["kind"] == "scan" else item["kind"]) in statuses
                ), (shipment, event_id)
        for message_id, cause in await service.rows(
            "SELECT message_id, cause FROM statesvc.dead_letter WHERE kind = 'message'"
        ):
            document = documents_by_message[str(message_id)]
            if any(
                stated["tracking_number"] is None or stated.get("number_from_request")
                for stated in document["events"]
            ):
                assert cause in {"no_tracking_number", "rejected_member"}, (document["path"], cause)
            else:
                assert document["events"] == [], (document["path"], cause)
        assert await service.value("SELECT count(*) FROM statesvc.conflict") == 0
