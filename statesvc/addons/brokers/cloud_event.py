"""Notifications as CloudEvents 1.0 in binary content mode: data in the body, attributes beside it.

Each broker's module maps the attributes by its protocol binding. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from events.entry.kinds import rfc3339
from statesvc.delivery.outgoing import Outgoing

CONTENT_TYPE: Final = "application/json"
_SIGNATURE_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """`attributes` without `datacontenttype`, which is CONTENT_TYPE and which
    bindings map differently.

    `signature`: the headers that let a consumer check with a library of Standard Webhooks
    that the data is ours.
    """

    id: str
    partition_key: str
    """Messages with the same key keep their order."""
    attributes: Mapping[str, str]
    signature: Mapping[str, str]
    data: bytes = field(repr=False)

    def headers(self, prefix: str) -> dict[str, str]:
        """Return the attributes under a binding's prefix, and the signature under its own names."""
        return {
            **{prefix + name: value for name, value in self.attributes.items()},
            **self.signature,
        }


def cloud_event(outgoing: Outgoing, *, source: str) -> CloudEvent:
    """Build the event. `source` names this installation; with the id it is unique."""
    attributes = {
        "specversion": "1.0",
        "id": outgoing.webhook_id,
        "source": source,
        "type": outgoing.type,
        "subject": outgoing.subject,
        "time": rfc3339(outgoing.at),
        "partitionkey": outgoing.subject,
    }
    if outgoing.sequence is not None:
        # the extension wants strings that sort as the numbers do
        attributes["sequence"] = f"{outgoing.sequence:010d}"
    return CloudEvent(
        id=outgoing.webhook_id,
        partition_key=outgoing.subject,
        attributes=attributes,
        signature={
            name: outgoing.headers[name] for name in _SIGNATURE_HEADERS if name in outgoing.headers
        },
        data=outgoing.body,
    )
