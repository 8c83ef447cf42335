"""Every type of notification: meaning, `data`, and an example.

To add one, add a row.

Tests, the page `docs/events.md` and OpenAPI's `webhooks` are made of this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from uuid import UUID

from events.entry.kinds import rfc3339
from projections.expectations import FIRST_SEQUENCE
from projections.notification_type import NotificationType
from statesvc.delivery.full_payload import FullPayload
from statesvc.delivery.notification import Notification, data_of
from statesvc.delivery.notification_data import (
    ChangeData,
    ConnectionTestData,
    NotifiedShipment,
    OperatorData,
)
from statesvc.shipments.models import PersonalPart, Signer, StatedEvent

CONNECTION_TEST: Final = "subscription.test"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """`kind` is the `type` of the body, `data` the TypedDict of its data; `thin`, `full` and
    `personal`: an example for each payload.
    """

    kind: str
    summary: str
    description: str
    data: type[Any]
    thin: Mapping[str, Any]
    full: Mapping[str, Any]
    personal: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of its schema: `ShipmentStatusChanged`."""
        return "".join(word.capitalize() for word in self.kind.replace(".", "_").split("_"))

    def example(self, payload: str, *, pii: bool) -> Mapping[str, Any]:
        """Return the example that a subscription with this payload gets."""
        return self.thin if payload == "thin" else self.personal if pii else self.full


# Time at which the examples were recorded.
EXAMPLE_AT: Final = datetime(2026, 3, 3, 22, 30, 5, tzinfo=UTC)
_DELIVERED_AT: Final = datetime(2026, 3, 3, 17, 30, tzinfo=timezone(timedelta(hours=-5)))
_NUMBER: Final = "1Z999AA10123456784"
_EVENT: Final[StatedEvent] = {
    "carrier_id": "ups",
    "event_id": "d1-260303-7hqk2m5xw3ztq4vaoyb6n2lrcu",
    "tracking_number": _NUMBER,
    "discriminator": "",
    "kind": "scan",
    "occurred_at": _DELIVERED_AT.isoformat(),
    "occurred_at_raw": "20260303 173000",
    "tz_source": "pair",
    "time_precision": "second",
    "status": "delivered",
    "reason": None,
    "carrier_code": "D/KB",
    "by_category": False,
    "location": {
        "city": "Louisville",
        "region": "KY",
        "postal_code": "402",
        "country": "US",
        "facility": None,
    },
    "piece": None,
    "estimated_delivery": "2026-03-03",
    "service": "UPS Ground",
    "corrects": None,
    "anchor": None,
}
_SHIPMENT: Final[NotifiedShipment] = {
    "shipment_id": UUID("5a2c7b60-3c1e-4b8f-9a55-0d1f6f3c2b7e"),
    "carrier_id": "ups",
    "tracking_number": _NUMBER,
    "discriminator": "",
    "status": "delivered",
    "reason": None,
    "status_since": _DELIVERED_AT,
    "terminal": True,
    "flags": [],
    "version": 7,
    "last_event_at": _DELIVERED_AT,
    "recorded_at": EXAMPLE_AT,
    "estimated_delivery": "2026-03-03",
    "service": "UPS Ground",
    "delivered_at": _DELIVERED_AT,
    "attempts": 0,
}
_PERSONAL: Final[PersonalPart] = {
    "description": "DELIVERED",
    "signed_by": "SAMPLE",
    "delivery_address": None,
}
_SIGNER: Final[Signer] = {"signed_by": "SAMPLE"}


def _change(
    kind: NotificationType, *, before: str, full: FullPayload | None = None
) -> Mapping[str, Any]:
    return data_of(
        Notification(
            webhook_id="",
            type=kind,
            created_at=EXAMPLE_AT,
            occurred_at=_DELIVERED_AT,
            carrier_id="ups",
            tracking_number=_NUMBER,
            from_status=before,
            to_status="delivered",
            sequence=7,
            full=full,
        )
    )


def _of_change(kind: NotificationType, summary: str, description: str, *, before: str) -> EventType:
    personal = FullPayload(
        event={**_EVENT, **_PERSONAL}, shipment={**_SHIPMENT, **_SIGNER}, erased=False
    )
    return EventType(
        kind=kind.value,
        summary=summary,
        description=description,
        data=ChangeData,
        thin=_change(kind, before=before),
        full=_change(
            kind, before=before, full=FullPayload(event=_EVENT, shipment=_SHIPMENT, erased=False)
        ),
        personal=_change(kind, before=before, full=personal),
    )


def _of_observation(
    kind: NotificationType,
    summary: str,
    description: str,
    *,
    status: str,
    cause: str,
    hours: int,
    version: int = 6,
) -> EventType:
    data = data_of(
        Notification(
            webhook_id="",
            type=kind,
            created_at=EXAMPLE_AT,
            occurred_at=EXAMPLE_AT - timedelta(seconds=12),
            carrier_id="ups",
            tracking_number=_NUMBER,
            from_status=status,
            to_status=status,
            sequence=FIRST_SEQUENCE + 1,
            observed={"version": version, "cause": cause, "hours": hours},
        )
    )
    return EventType(
        kind=kind.value,
        summary=summary,
        description=description,
        data=ChangeData,
        thin=data,
        full=data,
        personal=data,
    )


# Pages of the runbook.
INCIDENT_PAGES: Final[Mapping[str, str]] = {
    NotificationType.OPERATOR_SUBSCRIPTION_FAILING: "SubscriberFailing",
    NotificationType.OPERATOR_SUBSCRIPTION_DISABLED: "SubscriberFailing",
    NotificationType.OPERATOR_CARRIER_SILENT: "CarrierSilent",
    NotificationType.OPERATOR_UNKNOWN_CODES: "UnknownCodes",
    NotificationType.OPERATOR_SEALER_STOPPED: "SealerStopped",
    NotificationType.OPERATOR_SPOOL_IN_USE: "SpoolWaits",
    NotificationType.OPERATOR_ROLLOUT_TURNED_BACK: "FormatChanged",
}


def _of_operator(kind: NotificationType, summary: str, description: str, target: str) -> EventType:
    data: OperatorData = {
        "incident_id": UUID("3f6b1a52-9c0e-4f0c-8d8e-2a7d5c1b9e40"),
        "state": "open",
        "target": target,
        "since": rfc3339(EXAMPLE_AT - timedelta(hours=5)),
        "text": summary,
        "page": INCIDENT_PAGES[kind],
    }
    return EventType(
        kind=kind.value,
        summary=summary,
        description=description,
        data=OperatorData,
        thin=data,
        full=data,
        personal=data,
    )


_SUBSCRIPTION: Final = "0c9f2a34-5d0e-4c0b-8a6e-1f7b3f1f9a10"
_TARGET: Final = f"subscription {_SUBSCRIPTION}"
_CONNECTION_TEST_DATA: Final[ConnectionTestData] = {"subscription_id": _SUBSCRIPTION}

EVENT_TYPES: Final = (
    _of_change(
        NotificationType.STATUS_CHANGED,
        "A shipment's status changed",
        "One notification for each change, in order. A whole history in one push causes one"
        " notification. A late scan or a correction may change the status back.",
        before="out_for_delivery",
    ),
    _of_change(
        NotificationType.UPDATED,
        "Facts of a shipment changed without its status",
        "Another delivery at a later time, or a correction of reason, status time, delivery time,"
        " attempts or signature. `from` equals `to`.",
        before="delivered",
    ),
    _of_observation(
        NotificationType.STALLED,
        "No scan for longer than usual",
        "The carrier's rules set the limit for each status. Sent once after a scan; the next scan"
        " clears the flag `stalled`.",
        status="in_transit",
        cause="d1-260226-w2zq5dnd5cjzbdqcqbqjsu3hbe",
        hours=120,
    ),
    _of_observation(
        NotificationType.NOT_PICKED_UP,
        "A label without a pick-up",
        "Sent once for a shipment.",
        status="info_received",
        cause="label",
        hours=120,
    ),
    _of_observation(
        NotificationType.OVERDUE,
        "The promised day ended without a delivery",
        "The promise is the carrier's first estimate.",
        status="in_transit",
        cause="2026-03-02",
        hours=0,
    ),
    _of_observation(
        NotificationType.DELIVERY_MISSED,
        "Out for delivery, and the day ended without a delivery",
        "Sent at midnight of the last scan's place, once for each day out.",
        status="out_for_delivery",
        cause="2026-03-03",
        hours=0,
    ),
    _of_observation(
        NotificationType.PICKUP_EXPIRING,
        "A waiting parcel will soon be sent back",
        "Sent each time the parcel becomes available.",
        status="available_for_pickup",
        cause="2026-02-26T17:30:00-05:00",
        hours=120,
    ),
    _of_observation(
        NotificationType.NEVER_HEARD,
        "No event arrived for an awaited number",
        "`PUT /v1/shipments/{carrier_id}/{tracking_number}/awaited` registered the number, and"
        " neither its carrier nor an aggregator that names the carrier sent an event within the"
        " hours. There is no shipment yet: `sequence` is 0. Sent once for each registration.",
        status="unknown",
        cause="2026-03-01T22:30:05+00:00",
        hours=48,
        version=0,
    ),
    _of_operator(
        NotificationType.OPERATOR_SUBSCRIPTION_FAILING,
        "Every attempt at a subscription has failed for a day",
        "Over with a delivery, or when somebody resumes it.",
        _TARGET,
    ),
    _of_operator(
        NotificationType.OPERATOR_SUBSCRIPTION_DISABLED,
        "The service disabled a subscription",
        "Over when somebody resumes or deletes it.",
        _TARGET,
    ),
    _of_operator(
        NotificationType.OPERATOR_CARRIER_SILENT,
        "A carrier pushed plenty yesterday and nothing for four hours",
        "Over with its next push.",
        "carrier ups",
    ),
    _of_operator(
        NotificationType.OPERATOR_UNKNOWN_CODES,
        "A carrier sends unknown codes",
        "Over when no code of the carrier is open.",
        "carrier ups",
    ),
    _of_operator(
        NotificationType.OPERATOR_SEALER_STOPPED,
        "The log has not been sealed for a minute",
        (
            "Over when nothing waits for longer than 15 s. A sealer that refuses the log stops"
            " this notification too."
        ),
        "log",
    ),
    _of_operator(
        NotificationType.OPERATOR_SPOOL_IN_USE,
        "A spool has held acknowledged messages for a minute",
        "Over when it is empty. While the database is away nothing is sent.",
        "spool ingress-1",
    ),
    _of_operator(
        NotificationType.OPERATOR_ROLLOUT_TURNED_BACK,
        "The guard stopped a rollout",
        "Over when its notice is marked as seen.",
        "carrier ups",
    ),
    EventType(
        kind=CONNECTION_TEST,
        summary="A test that you requested",
        description=(
            "`POST /v1/subscriptions/{id}/test` without a `type` checks that notifications arrive"
            " and verify."
        ),
        data=ConnectionTestData,
        thin=_CONNECTION_TEST_DATA,
        full=_CONNECTION_TEST_DATA,
        personal=_CONNECTION_TEST_DATA,
    ),
)

BY_TYPE: Final[Mapping[str, EventType]] = {each.kind: each for each in EVENT_TYPES}
