"""Service of the fixture `statesvc`: carriers that push to it, and its clock."""

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from statesvc.addons.demo.movable_clock import advance_clock
from statesvc.addons.demo.sample_pushes import sample_push
from statesvc_client import signatures
from statesvc_client.sync.client import Client
from statesvc_client.testing.notifications import SECRET, SignedNotification, signed_notification

if TYPE_CHECKING:
    from statesvc_client.core.models.shipment import Shipment

T = TypeVar("T")

_WAIT_SECONDS = 20.0
_LOOK_SECONDS = 0.02
_FIRST_SCAN_AGO = timedelta(hours=6)
_BETWEEN_SCANS = timedelta(minutes=1)


class Clock:
    """The clock of the embedded service. One that runs by itself has a clock of its own, which
    nobody moves.
    """

    def __init__(self, data_dir: Path | None) -> None:
        self._data_dir = data_dir
        self.moved = timedelta()
        """Time that it is ahead."""

    def advance(self, **by: float) -> None:
        """Move it forward, by `hours=49` as `timedelta` takes it, and let what is due by then
        happen: retries, parcels that stall.

        What is sent from then on is signed with that time, and `verify` in this process goes by it.
        A program in another language needs a larger tolerance.
        """
        if self._data_dir is None:
            raise RuntimeError(
                "the clock of a running service is its own: leave out --statesvc-url for an embedded one"
            )
        moved = timedelta(**by)
        # of its own thread: the test may run in an event loop
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, advance_clock(self._data_dir, moved)).result()
        self.moved += moved
        signatures.clock = self._now

    def reset(self) -> None:
        """Let `verify` go by this machine's clock again."""
        signatures.clock = time.time

    def _now(self) -> float:
        return time.time() + self.moved.total_seconds()


class Service:
    """A service to test against. `url` and `key` are for your application, `client` for the
    test.
    """

    secret = SECRET
    """With which `signed_notification` signs."""

    def __init__(self, url: str, key: str, *, data_dir: Path | None = None) -> None:
        self.url = url
        self.key = key
        self.client = Client(url, key=key)
        self.clock = Clock(data_dir)
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30
        )
        self._scans: dict[tuple[str, str], datetime] = {}

    def push(
        self, carrier_id: str, status: str, *, number: str | None = None, at: datetime | None = None
    ) -> "Shipment":
        """Post a sample of this carrier that says this status, wait until it took effect, and
        return the shipment.

        Args:
            carrier_id: One of `ups`, `fedex`, `usps`, `dhl_unified`, `dhl_express`, `easypost`.
            status: As the API has it, such as `in_transit`. number: The parcel. Default: a new one.
            at: When it was scanned. Default: a minute after this parcel's last scan, the first some
            hours ago.
        """
        at = at or self._next_scan(carrier_id, number)
        push = sample_push(carrier_id, status, number=number, at=at)
        self._scans[carrier_id, push.number] = at
        self.push_raw(carrier_id, push.body, content_type=push.content_type, number=push.number)
        return self.client.shipments.get(carrier_id, push.number)

    def push_raw(
        self,
        carrier_id: str,
        body: bytes,
        *,
        content_type: str = "application/json",
        number: str | None = None,
    ) -> str:
        """Post a body of your own. With `number`: wait until that shipment shows it. Return the
        message's id.
        """
        answer = self._http.post(
            f"/v1/webhooks/{carrier_id}", content=body, headers={"Content-Type": content_type}
        )
        answer.raise_for_status()
        message_id = answer.headers["Statesvc-Message-Id"]
        if number is not None:
            self.until(lambda: self._has_effect(carrier_id, number, message_id))
        return message_id

    def subscribe(self, url: str, **filters: Any) -> str:
        """Subscribe a URL; what it is sent is signed with `secret`. Return the subscription's
        id.
        """
        answer = self._http.post("/v1/subscriptions", content=json.dumps({"url": url, **filters}))
        answer.raise_for_status()
        subscription_id: str = answer.json()["id"]
        self._http.put(
            f"/v1/subscriptions/{subscription_id}/secret", content=json.dumps({"secret": SECRET})
        ).raise_for_status()
        return subscription_id

    def signed_notification(
        self, kind: str = "shipment.status_changed", **options: Any
    ) -> SignedNotification:
        """Make a notification without pushing anything
        (`statesvc_client.testing.signed_notification`).
        """
        return signed_notification(kind, **options)

    def until(self, holds: Callable[[], T], *, seconds: float = _WAIT_SECONDS) -> T:
        """Wait until something is true, and return it. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not (found := holds()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds:g} s")
            time.sleep(_LOOK_SECONDS)
        return found

    def close(self) -> None:
        """Close the connections."""
        self.clock.reset()
        self._http.close()
        self.client.close()

    def _next_scan(self, carrier_id: str, number: str | None) -> datetime:
        now = datetime.now(UTC) + self.clock.moved
        last = self._scans.get((carrier_id, number or ""))
        return now - _FIRST_SCAN_AGO if last is None else min(last + _BETWEEN_SCANS, now)

    def _has_effect(self, carrier_id: str, number: str, message_id: str) -> bool:
        answer = self._http.get(f"/v1/shipments/{carrier_id}/{number}/audit")
        return answer.status_code == httpx.codes.OK and any(
            event["message_id"] == message_id for event in answer.json()["events"]
        )
