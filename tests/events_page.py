"""Writes docs/events.md from the catalogue of notifications: `python -m tests.events_page`.

A test compares the two.
"""

import json
from pathlib import Path
from typing import Any, Final

from statesvc.api.event_documents import examples
from statesvc.delivery.event_catalogue import EVENT_TYPES, EventType
from statesvc.delivery.notification_data import ChangeData
from statesvc.http.json_schemas import schemas_of

_SHOWN: Final = {
    "shipment.status_changed",
    "shipment.stalled",
    "operator.subscription_failing",
    "subscription.test",
}
"""An example for each shape of `data`; the API's documents have all of them."""
PAGE: Final = Path(__file__).parents[1] / "docs" / "events.md"
_HEAD: Final = """# The events
<!-- written by python -m tests.events_page: change statesvc/delivery/event_catalogue.py instead -->

Which notifications does a subscription send ([how to receive them](subscribers.md))?
Without `types` all types of a shipment are sent, and never `operator.*`. Later versions may add
types and members. Machine-readable: `webhooks` in `/openapi.json` (OpenAPI 3.1);
[brokers](brokers.md) have attributes beside. `POST /v1/subscriptions/{id}/test` with
`{"type": "..."}` sends an example of the type, signed, with `data.test` true. Missed deadlines have
the shape of `shipment.stalled`, `shipment.updated` that of `shipment.status_changed`, incidents
that of `operator.subscription_failing`: each is sent once with `state` `open` and once with
`recovered`.
"""


def page() -> str:
    return "\n".join([_HEAD, *map(_section, EVENT_TYPES), _members()])


def _section(event_type: EventType) -> str:
    bodies = examples(event_type)
    shown = [f"## `{event_type.kind}`", f"{event_type.summary}. {event_type.description}"]
    if event_type.kind in _SHOWN:
        shown.append(_json(bodies["thin"]))
    if event_type is EVENT_TYPES[0]:
        shown += ['With `"payload": "full"`:', _json(bodies["full"])]
    return "\n\n".join(shown) + "\n"


def _members() -> str:
    _, definitions = schemas_of([(ChangeData, "serialization")])
    members = definitions["ChangeData"]["properties"]
    required = set(definitions["ChangeData"]["required"])
    rows = [
        f"| `{name}` | {'always' if name in required else 'sometimes'} | {_text(schema)} |"
        for name, schema in members.items()
    ]
    return (
        "\n".join(
            [
                "## Members of `data`",
                "For the types of a shipment.",
                "",
                "| member | present | meaning |",
                "|---|---|---|",
                *rows,
            ]
        )
        + "\n"
    )


def _text(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).replace("|", "\\|")


def _json(value: Any) -> str:
    return "```json\n" + json.dumps(value, indent=1, ensure_ascii=False) + "\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
