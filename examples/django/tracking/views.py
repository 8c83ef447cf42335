"""The old view, which now forwards; the receiver of notifications; and what the shop shows."""

import httpx
from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST
from statesvc_client import Client, InvalidSignatureError, NotFoundError, verify

from tracking.models import Notification
from tracking.tasks import shipment_changed

# the proxy's, or made anew by our client
NOT_FORWARDED = {"connection", "content-length", "cookie", "host", "transfer-encoding"}
# WSGI knows no underscore in a header: nginx renames it (nginx.conf), and here it gets its name
# back
NAMED_BACK = {"webhook-key": "webhook_key"}


@csrf_exempt
@require_POST
def push(request: HttpRequest, carrier_id: str) -> HttpResponse:
    """Forward a carrier's push as it came, and answer as statesvc does.

    The bytes of `body`, not what Django parsed: the signature is over those. Its headers, all of
    them. And no key of ours: with a key of the scope `ingest` statesvc takes the push as ours, so
    that a wrong signature of the carrier would pass.
    """
    headers = {
        NAMED_BACK.get(name.lower(), name): value
        for name, value in request.headers.items()
        if name.lower() not in NOT_FORWARDED
    }
    try:
        answer = httpx.post(
            f"{settings.STATESVC_URL}/v1/webhooks/{carrier_id}",
            params=request.META["QUERY_STRING"],
            headers=headers,
            content=request.body,
            timeout=10,
        )
    except httpx.HTTPError:
        # nothing is durable: the carrier pushes again
        return HttpResponse(status=503, headers={"Retry-After": "30"})
    passed_on = {
        name: answer.headers[name]
        for name in ("Content-Type", "Retry-After", "Statesvc-Message-Id")
        if name in answer.headers
    }
    return HttpResponse(answer.content, status=answer.status_code, headers=passed_on)


@csrf_exempt
@require_POST
def notification(request: HttpRequest) -> HttpResponse:
    """Queue a task for each notification once, and answer when Celery's broker has it.

    Where this process dies between the two, statesvc sends again, and the task comes a second
    time under the same id.
    """
    try:
        event = verify(settings.NOTIFICATION_SECRETS, request.headers, request.body)
    except InvalidSignatureError:
        return HttpResponse(status=401)
    webhook_id = request.headers["webhook-id"]
    with transaction.atomic():
        received, _ = Notification.objects.select_for_update().get_or_create(webhook_id=webhook_id)
        if received.queued_at is None:
            shipment_changed.apply_async((event,), task_id=webhook_id)
            received.queued_at = timezone.now()
            received.save()
    return HttpResponse(status=204)


@require_GET
def parcel(_request: HttpRequest, carrier_id: str, number: str) -> JsonResponse:
    """Show where a parcel is. The state is statesvc's; the shop keeps no copy."""
    with Client(settings.STATESVC_URL, key=settings.STATESVC_API_KEY) as client:
        try:
            shipment = client.shipments.get(carrier_id, number)
        except NotFoundError:
            raise Http404 from None
    return JsonResponse(
        {
            "number": shipment.tracking_number,
            "status": shipment.status,
            "since": shipment.status_since,
        }
    )
