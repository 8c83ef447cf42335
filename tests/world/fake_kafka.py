"""A stand-in for a Kafka broker: one node, speaking just the requests that a producer makes,
over the real protocol.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

from aiokafka.protocol.admin import ApiVersionRequest_v0, ApiVersionResponse_v0
from aiokafka.protocol.api import RequestHeader_v1, ResponseHeader_v0
from aiokafka.protocol.metadata import MetadataRequest_v1, MetadataResponse_v1
from aiokafka.protocol.produce import ProduceRequest_v3, ProduceResponse_v3
from aiokafka.protocol.transaction import InitProducerIdRequest_v0, InitProducerIdResponse_v0
from aiokafka.record.memory_records import MemoryRecords

REQUESTS: Final = {
    one.API_KEY: one
    for one in (
        ApiVersionRequest_v0,
        MetadataRequest_v1,
        ProduceRequest_v3,
        InitProducerIdRequest_v0,
    )
}
NODE: Final = 7
PARTITIONS: Final = 8


@dataclass
class Stored:
    """One record as it arrived."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    headers: dict[str, bytes]


@dataclass
class FakeKafka:
    """`advertised`: where it says that it is; `produce_errors`: codes that it answers to the next
    requests; `topics`: that it knows.
    """

    topics: tuple[str, ...] = ("shipments",)
    port: int = 0
    advertised: tuple[str, int] | None = None
    produce_errors: list[int] = field(default_factory=list)
    producer_error: int = 0
    """Code that it answers to who wants to be an idempotent producer."""
    stored: list[Stored] = field(default_factory=list)
    acks: set[int] = field(default_factory=set)
    producers: set[tuple[int, int]] = field(default_factory=set)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                request = BytesIO(await reader.readexactly(size))
                key, _version, correlation_id, _client = (
                    part.decode(request) for part in RequestHeader_v1.SCHEMA.fields
                )
                answer = self._answer(key, REQUESTS[key].decode(request))
                encoded = ResponseHeader_v0(correlation_id).encode() + answer.encode()
                writer.write(len(encoded).to_bytes(4) + encoded)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, key: int, request: Any) -> Any:
        match key:
            case ApiVersionRequest_v0.API_KEY:
                return ApiVersionResponse_v0(
                    0,
                    [
                        (one, request.API_VERSION, request.API_VERSION)
                        for one, request in REQUESTS.items()
                    ],
                )
            case MetadataRequest_v1.API_KEY:
                host, port = self.advertised or ("127.0.0.1", self.port)
                partitions = [(0, number, NODE, [NODE], [NODE]) for number in range(PARTITIONS)]
                asked = [
                    (0, name, False, partitions) if name in self.topics else (3, name, False, [])
                    for name in request.topics or []
                ]
                return MetadataResponse_v1([(NODE, host, port, None)], NODE, asked)
            case InitProducerIdRequest_v0.API_KEY:
                return InitProducerIdResponse_v0(0, self.producer_error, 4711, 0)
            case _:
                return self._produce(request)

    def _produce(self, request: Any) -> Any:
        self.acks.add(request.required_acks)
        error = self.produce_errors.pop(0) if self.produce_errors else 0
        answers = []
        for topic, partitions in request.topics:
            answers.append(
                (topic, [(number, error, len(self.stored), -1) for number, _ in partitions])
            )
            if not error:
                for number, messages in partitions:
                    self._store(topic, number, messages)
        return ProduceResponse_v3(answers, 0)

    def _store(self, topic: str, partition: int, messages: bytes) -> None:
        records = MemoryRecords(messages)
        while (batch := records.next_batch()) is not None:
            self.producers.add((batch.producer_id, batch.base_sequence))
            self.stored += [
                Stored(topic, partition, one.key, one.value, dict(one.headers)) for one in batch
            ]


@asynccontextmanager
async def fake_kafka(**behaviour: Any) -> AsyncIterator[FakeKafka]:
    kafka = FakeKafka(**behaviour)
    server = await asyncio.start_server(kafka.serve, "127.0.0.1", 0)
    kafka.port = server.sockets[0].getsockname()[1]
    try:
        yield kafka
    finally:
        server.close()
