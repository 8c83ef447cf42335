"""`python -m statesvc.addons.demo.run --url http://127.0.0.1:8080 --rate 20`: sample carriers
against a service that is already running.

With an API key in STATESVC_DEMO_KEY the carriers push with it (scope `ingest`), so that none
needs a secret, and the sample subscriber listens too (scope `subscriptions`). Without, webhooks
must be let in unsigned.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import aiohttp

from statesvc.addons.demo.demo_counts import DemoCounts
from statesvc.addons.demo.subscriber import DemoSubscriber
from statesvc.addons.demo.traffic import Push, pushes
from statesvc.roles.shutdown import StopSignals
from statesvc.telemetry.logs import configure_logging

IN_FLIGHT_MAX: Final = 64
SUMMARY_SECONDS: Final = 5.0


class CarrierClient:
    """`rate` is in pushes a second.

    `url` is the service's base, without a slash at its end. `key`: push with an API key.
    """

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        url: str,
        rate: float,
        counts: DemoCounts,
        key: str | None = None,
    ) -> None:
        self._session = session
        self._url = url
        self._rate = rate
        self._counts = counts
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def run(self, traffic: Iterator[Push]) -> None:
        """Send until it is cancelled; requests that are under way then are dropped."""
        due = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for push in traffic:
                due = max(due + 1 / self._rate, time.monotonic() - 1)
                await asyncio.sleep(due - time.monotonic())
                await self._slots.acquire()
                group.create_task(self._send(push), name="demo-push")

    async def _send(self, push: Push) -> None:
        self._counts.behaviours[push.behaviour] += 1
        address = f"{self._url}/v1/webhooks/{push.carrier_id}"
        headers = {**self._headers, "Content-Type": push.content_type}
        try:
            async with self._session.post(address, data=push.body, headers=headers) as answer:
                await answer.read()
                if answer.ok:
                    self._counts.acknowledged += 1
                else:
                    self._counts.refused[answer.status] += 1
        except (aiohttp.ClientError, TimeoutError):
            self._counts.unanswered += 1
        finally:
            self._slots.release()


READY_WITHIN_SECONDS: Final = 60.0
KEY_VARIABLE: Final = "STATESVC_DEMO_KEY"


def main() -> int:
    """Run until it is asked to stop; return 1 if the service does not get ready."""
    parser = argparse.ArgumentParser(
        prog="python -m statesvc.addons.demo.run",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument(
        "--url",
        default="http://127.0.0.1:8080",
        help="base address of the service (default %(default)s)",
    )
    parser.add_argument(
        "--rate", type=_rate, default=20.0, help="pushes a second (default %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=None, help="the same seed invents the same parcels"
    )
    options = parser.parse_args()
    return asyncio.run(_run(options, os.environ.get(KEY_VARIABLE)))


def _rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate <= 10_000:
        raise argparse.ArgumentTypeError("must lie between 0 and 10000")
    return rate


async def _run(options: argparse.Namespace, key: str | None) -> int:
    url = options.url.rstrip("/")
    configure_logging(process="demo", level="warning")
    signals = StopSignals()
    signals.listen()
    stop = signals.stopping
    counts = DemoCounts()
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(
        timeout=timeout, connector=aiohttp.TCPConnector(limit=128)
    ) as session:
        if not await _is_ready(session, url, stop):
            if stop.is_set():
                return 0
            _say(f"{url} did not get ready within {READY_WITHIN_SECONDS:.0f} s")
            return 1
        subscriber = await _subscribe(session, url, key, counts)
        # invented parcels need no secrets
        traffic = pushes(random.Random(options.seed), lambda: datetime.now(UTC))  # noqa: S311
        client = CarrierClient(session=session, url=url, rate=options.rate, counts=counts, key=key)
        sending = asyncio.create_task(client.run(traffic), name="demo-carriers")
        stopping = asyncio.create_task(stop.wait(), name="demo-stop")
        while not sending.done() and not stopping.done():
            await asyncio.wait(
                {sending, stopping}, timeout=SUMMARY_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            _say(f"demo: {counts.summary()}")
        stopping.cancel()
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        if subscriber is not None:
            await subscriber.stop()
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _subscribe(
    session: aiohttp.ClientSession, url: str, key: str | None, counts: DemoCounts
) -> DemoSubscriber | None:
    if not key:
        _say(f"no subscriber: {KEY_VARIABLE} holds no key")
        return None
    subscriber = DemoSubscriber(session=session, api=url, key=key, counts=counts, show_line=_say)
    try:
        await subscriber.start()
    except aiohttp.ClientResponseError as error:
        _say(
            f"no subscriber: the service refused it with {error.status} (is"
            " STATESVC_SUBSCRIBER_ALLOW set to 127.0.0.0/8?)"
        )
        await subscriber.stop()
        return None
    return subscriber


async def _is_ready(session: aiohttp.ClientSession, url: str, stop: asyncio.Event) -> bool:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while time.monotonic() < deadline and not stop.is_set():
        with suppress(aiohttp.ClientError, TimeoutError):
            async with session.get(
                f"{url}/readyz", timeout=aiohttp.ClientTimeout(total=2)
            ) as answer:
                if answer.status == 200:
                    return True
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), timeout=0.2)
    return False


if __name__ == "__main__":
    sys.exit(main())
