"""The spans of those messages of a batch that are traced: from the claim to the
commit that settled them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self
from uuid import UUID

from opentelemetry.trace import Link, NoOpTracer, Span, Tracer

from statesvc.queue.claim import Message
from statesvc.telemetry.metric import Stage
from statesvc.telemetry.tracing import begin, traceparent_of

_LINKS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class MessageTraces:
    """Traces of a batch's messages; empty where tracing is off."""

    spans: Mapping[UUID, Span] = field(default_factory=dict)

    @classmethod
    def of(cls, tracer: Tracer, messages: Iterable[Message]) -> Self:
        """Begin a span for each message that has a trace."""
        if isinstance(tracer, NoOpTracer):
            return cls()
        return cls(
            {
                message.message_id: begin(
                    tracer,
                    Stage.PROCESS,
                    {
                        "carrier": message.carrier_id,
                        "message_id": str(message.message_id),
                        "attempt": message.attempts,
                    },
                    parent=message.traceparent,
                )
                for message in messages
                if message.traceparent is not None
            }
        )

    def links(self) -> Sequence[Link]:
        """Return links for the spans of the batch's stages."""
        return [Link(span.get_span_context()) for span in list(self.spans.values())[:_LINKS_MAX]]

    def traceparents(self) -> dict[UUID, str]:
        """Return by message the header that passes its trace on to the notifier."""
        found = {message_id: traceparent_of(span) for message_id, span in self.spans.items()}
        return {
            message_id: traceparent
            for message_id, traceparent in found.items()
            if traceparent is not None
        }

    def end(self) -> None:
        """End the spans: the batch is done, however it went for each message."""
        for span in self.spans.values():
            span.end()

    def settled(self, message_ids: Iterable[UUID], outcome: str) -> None:
        """Record the outcome of messages: applied, buried, retried, postponed."""
        for message_id in message_ids:
            if (span := self.spans.get(message_id)) is not None:
                span.set_attribute("outcome", outcome)
