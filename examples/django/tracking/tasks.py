"""Tasks of the shop when a parcel changes."""

from typing import Any

from celery import Task, shared_task
from django.db import OperationalError, transaction

from tracking.models import Told


@shared_task(bind=True, autoretry_for=(OperationalError,), retry_backoff=True)
def shipment_changed(self: "Task[..., None]", event: dict[str, Any]) -> None:
    """Tell the customer, once: the id of the task is the webhook-id, whoever queued it (our
    view, or statesvc itself).
    """
    data = event["data"]
    with transaction.atomic():
        _, is_new = Told.objects.get_or_create(
            webhook_id=self.request.id,
            defaults={
                "tracking_number": data.get("tracking_number", ""),
                "status": data.get("to", ""),
            },
        )
        if is_new:
            tell_customer(data)


def tell_customer(data: dict[str, Any]) -> None:
    """Send the mail. Here: nothing."""
