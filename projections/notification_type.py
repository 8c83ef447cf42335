"""Types of notifications, as the bodies, the database and the API name them. Pure."""

from enum import StrEnum

from projections.expectations import Expectation


class NotificationType(StrEnum):
    """The `type` of a notification.

    Members are only added; `statesvc/delivery/event_catalogue.py` describes each.
    """

    STATUS_CHANGED = "shipment.status_changed"
    UPDATED = "shipment.updated"
    STALLED = "shipment.stalled"
    NOT_PICKED_UP = "shipment.not_picked_up"
    OVERDUE = "shipment.overdue"
    DELIVERY_MISSED = "shipment.delivery_missed"
    PICKUP_EXPIRING = "shipment.pickup_expiring"
    NEVER_HEARD = "shipment.never_heard"
    OPERATOR_SUBSCRIPTION_FAILING = "operator.subscription_failing"
    OPERATOR_SUBSCRIPTION_DISABLED = "operator.subscription_disabled"
    OPERATOR_CARRIER_SILENT = "operator.carrier_silent"
    OPERATOR_UNKNOWN_CODES = "operator.unknown_codes"
    OPERATOR_SEALER_STOPPED = "operator.sealer_stopped"
    OPERATOR_SPOOL_IN_USE = "operator.spool_in_use"
    OPERATOR_ROLLOUT_TURNED_BACK = "operator.rollout_turned_back"


def is_of_operator(kind: str) -> bool:
    """Return whether the type concerns the service itself, and no shipment."""
    return kind.startswith("operator.")


def type_of_observation(kind: Expectation) -> NotificationType:
    return NotificationType(f"shipment.{kind}")


def type_of_change(from_status: str, to_status: str) -> NotificationType:
    """Return the type for a change of a shipment, by its status before and after."""
    return NotificationType.UPDATED if from_status == to_status else NotificationType.STATUS_CHANGED
