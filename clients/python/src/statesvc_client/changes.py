"""Changes of status as the stream has them."""

from dataclasses import dataclass

from statesvc_client.core.models.streamed_transition import StreamedTransition


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a shipment's status. `id` is where to go on: `stream(after=change.id)`."""

    id: str
    transition: StreamedTransition
