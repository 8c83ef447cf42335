"""Kafka, against a stand-in that speaks its protocol: what is published, and to which
addresses anything is.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest
from cloudevents.core.bindings import kafka
from cloudevents.core.formats.json import JSONFormat

from statesvc.delivery.outcome import AttemptOutcome
from statesvc.delivery.outgoing import Destination, Login, Outgoing
from statesvc.delivery.targets import Targets
from tests.world.fake_kafka import FakeKafka, fake_kafka

MakeOutgoing = Callable[..., Outgoing]
pytestmark = pytest.mark.asyncio(loop_scope="module")


def destination(broker: FakeKafka, path: str = "/shipments") -> Destination:
    return Destination(f"kafka://127.0.0.1:{broker.port}{path}")


async def test_it_is_stored_by_all_replicas_as_a_cloud_event_keyed_by_its_shipment(
    targets: Targets, outgoing: MakeOutgoing
) -> None:
    async with fake_kafka() as broker:
        sent = outgoing(sequence=7)
        answer = await targets.send(destination(broker), sent)
        assert answer.outcome is AttemptOutcome.DELIVERED
        (stored,) = broker.stored
        assert orjson.loads(answer.response) == {
            "topic": "shipments",
            "partition": stored.partition,
            "offset": 0,
        }
        assert broker.acks == {-1}
        assert {producer_id for producer_id, _ in broker.producers} == {4711}, "idempotent"
        event = kafka.from_binary(
            kafka.KafkaMessage(stored.headers, stored.key, stored.value), JSONFormat()
        )
        assert (event.get_id(), event.get_subject(), event.get_extension("sequence")) == (
            sent.webhook_id,
            sent.subject,
            "0000000007",
        )
        assert stored.key == sent.subject.encode()
        assert {
            name: stored.headers[name].decode()
            for name in sent.headers
            if name.startswith("webhook-")
        } == {name: value for name, value in sent.headers.items() if name.startswith("webhook-")}


async def test_a_shipment_stays_in_one_partition_and_in_order(
    targets: Targets, outgoing: MakeOutgoing
) -> None:
    async with fake_kafka() as broker:
        for sequence in range(1, 6):
            for shipment in "abcdefgh":
                await targets.send(
                    destination(broker), replace(outgoing(sequence=sequence), subject=shipment)
                )
        found: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for one in broker.stored:
            found[one.key].append((one.partition, int(one.headers["ce_sequence"])))
    for places in found.values():
        assert len({partition for partition, _ in places}) == 1
        assert [sequence for _, sequence in places] == [1, 2, 3, 4, 5]
    assert len({places[0][0] for places in found.values()}) > 1


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(29, AttemptOutcome.DENIED), (10, AttemptOutcome.REFUSED), (17, AttemptOutcome.UNROUTABLE)],
)
async def test_what_the_cluster_refuses_is_named(
    targets: Targets, outgoing: MakeOutgoing, code: int, outcome: AttemptOutcome
) -> None:
    async with fake_kafka(produce_errors=[code]) as broker:
        answer = await targets.send(destination(broker), outgoing())
        assert answer.outcome is outcome
        assert answer.detail
        assert (
            await targets.send(destination(broker), outgoing())
        ).outcome is AttemptOutcome.DELIVERED


async def test_a_broker_that_takes_no_idempotent_producer_is_a_refusal_with_its_answer(
    targets: Targets, outgoing: MakeOutgoing
) -> None:
    async with fake_kafka(producer_error=-1) as broker:
        answer = await targets.send(destination(broker), outgoing())
    assert (answer.outcome, answer.detail) == (
        AttemptOutcome.REFUSED,
        "the broker answered UnknownError",
    )


async def test_nothing_is_connected_to_that_is_not_allowed(outgoing: MakeOutgoing) -> None:
    async with fake_kafka() as broker, Targets(connect_seconds=2, total_seconds=3) as targets:
        assert (
            await targets.send(destination(broker), outgoing())
        ).outcome is AttemptOutcome.ADDRESS_REFUSED
        assert broker.connections == 0


async def test_where_the_cluster_says_that_it_is_counts_as_much_as_where_the_url_does(
    targets: Targets, outgoing: MakeOutgoing
) -> None:
    async with fake_kafka(advertised=("169.254.169.254", 80)) as broker:
        answer = await targets.send(destination(broker), outgoing())
        assert answer.outcome is AttemptOutcome.ADDRESS_REFUSED
        assert broker.stored == []


async def test_nobody_there_is_a_refused_connection(
    targets: Targets, outgoing: MakeOutgoing
) -> None:
    for login in (None, Login("user", "password")):
        answer = await targets.send(Destination("kafka://127.0.0.1:1/shipments", login), outgoing())
        assert answer.outcome is AttemptOutcome.CONNECTION_REFUSED
