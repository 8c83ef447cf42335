"""The shop with statesvc: a carrier's push in, a customer told once."""

import os

import httpx
from statesvc_client.testing import Service, signed_notification
from tracking.models import Told

from tests.conftest import UPS_SECRET

BODY = (
    b'{"trackingNumber": "%s", "localActivityDate": "20260301", "localActivityTime": "140500",'
    b' "gmtActivityDate": "20260301", "gmtActivityTime": "190500", "activityStatus": {"type": "D",'
    b' "code": "FS", "description": "Delivered"}}'
)


def pushed(
    shop, number: str, credential: str, *, carrier_id: str = "ups", header: str = "credential"
) -> httpx.Response:
    return httpx.post(
        f"{shop.url}/webhooks/{carrier_id}/",
        content=BODY % number.encode(),
        headers={header: credential},
    )


def test_a_push_to_the_old_view_reaches_statesvc_and_the_shop_shows_its_state(
    shop, statesvc: Service
) -> None:
    assert pushed(shop, "1ZSHOP0000000001", UPS_SECRET).status_code == 200
    shown = statesvc.until(
        lambda: (
            httpx.get(f"{shop.url}/parcels/ups/1ZSHOP0000000001/").json().get("status")
            == "delivered"
        )
    )
    assert shown
    assert httpx.get(f"{shop.url}/parcels/ups/1ZNEVER/").status_code == 404


def test_a_carrier_that_was_given_the_url_without_a_slash_is_not_sent_elsewhere(shop) -> None:
    answer = httpx.post(
        f"{shop.url}/webhooks/ups",
        content=BODY % b"1ZSHOP0000000009",
        headers={"credential": UPS_SECRET},
    )
    assert answer.status_code == 200


def test_a_push_that_is_not_the_carriers_is_refused_through_the_view(shop) -> None:
    assert pushed(shop, "1ZSHOP0000000002", "a wrong one").status_code == 401


def test_a_header_with_an_underscore_has_its_name_again(shop) -> None:
    assert (
        pushed(
            shop, "1ZSHOP0000000003", UPS_SECRET, carrier_id="clickpost", header="Webhook-Key"
        ).status_code
        == 200
    )
    # without nginx's help it never arrives
    assert (
        pushed(
            shop, "1ZSHOP0000000003", UPS_SECRET, carrier_id="clickpost", header="webhook_key"
        ).status_code
        == 401
    )


def test_while_statesvc_is_away_the_carrier_is_asked_to_push_again(shop, settings) -> None:
    settings.STATESVC_URL = "http://127.0.0.1:9"
    answer = pushed(shop, "1ZSHOP0000000004", UPS_SECRET)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")


def test_a_notification_that_comes_three_times_starts_one_task(
    shop, worker: None, statesvc: Service
) -> None:
    sent = signed_notification(to="delivered", tracking_number="1ZONCE")
    answers = [
        httpx.post(f"{shop.url}/notifications/", content=sent.body, headers=dict(sent.headers))
        for _ in range(3)
    ]
    assert [answer.status_code for answer in answers] == [204, 204, 204]
    assert statesvc.until(lambda: list(Told.objects.values_list("webhook_id", "status"))) == [
        (sent.id, "delivered")
    ]


def test_a_notification_that_is_not_signed_starts_none(shop) -> None:
    sent = signed_notification()
    assert (
        httpx.post(
            f"{shop.url}/notifications/", content=sent.body + b" ", headers=dict(sent.headers)
        ).status_code
        == 401
    )


def test_a_push_becomes_a_task_by_way_of_our_url(shop, worker: None, statesvc: Service) -> None:
    subscription = statesvc.subscribe(f"{shop.url}/notifications/", statuses=["delivered"])
    shipment = statesvc.push("fedex", "delivered")
    told = statesvc.until(
        lambda: Told.objects.filter(tracking_number=shipment.tracking_number).first()
    )
    assert told.status == "delivered"
    statesvc.client.subscriptions.delete(subscription)


def test_a_push_becomes_a_task_without_our_url(shop, worker: None, statesvc: Service) -> None:
    broker = os.environ["BROKER_URL"]
    queue = "%2F/celery" if broker.startswith("amqp") else "celery"
    subscription = statesvc.subscribe(
        f"celery+{broker.rstrip('/')}/{queue}?task=tracking.tasks.shipment_changed"
    )
    shipment = statesvc.push("dhl_unified", "delivered")
    assert statesvc.until(
        lambda: Told.objects.filter(tracking_number=shipment.tracking_number).first()
    )
    statesvc.client.subscriptions.delete(subscription)


def test_a_parcel_that_stalls_is_told_days_later(shop, worker: None, statesvc: Service) -> None:
    subscription = statesvc.subscribe(f"{shop.url}/notifications/", types=["shipment.stalled"])
    shipment = statesvc.push("ups", "in_transit")
    statesvc.clock.advance(days=10)
    assert statesvc.until(
        lambda: Told.objects.filter(tracking_number=shipment.tracking_number).first()
    )
    statesvc.client.subscriptions.delete(subscription)
