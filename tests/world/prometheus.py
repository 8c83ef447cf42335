"""A Prometheus of its own, which scrapes every second, and is asked what it knows and
which alerts there are.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.world.ports import free_port


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Alert as Prometheus has it now. `since`: when its condition began to hold."""

    name: str
    firing: bool
    since: float
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Prometheus:
    """Asked by its own API."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def alerts(self) -> list[Alert]:
        """Return all that are pending or firing.

        Raises ConnectionError while Prometheus does not answer.
        """
        try:
            async with self._session.get(f"{self._url}/api/v1/alerts") as answer:
                document = await answer.json()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionError("no answer") from error
        return [_alert(each) for each in document["data"]["alerts"]]

    async def firing(self) -> set[str]:
        """Return the names of those that call a human."""
        return {alert.name for alert in await self.alerts() if alert.firing}

    async def until_firing(self, name: str, *, seconds: float) -> Alert:
        """Wait until it fires; raise AssertionError with what there is instead."""
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            with suppress(ConnectionError):
                for alert in await self.alerts():
                    if alert.name == name and alert.firing:
                        return alert
            await asyncio.sleep(0.5)
        raise AssertionError(
            f"{name} does not fire within {seconds:g} s; there are {await self.alerts()}"
        )

    async def until_silent(self, name: str, *, seconds: float) -> None:
        """Wait until it fires no more."""
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            with suppress(ConnectionError):
                if name not in await self.firing():
                    return
            await asyncio.sleep(0.5)
        raise AssertionError(f"{name} still fires after {seconds:g} s: {await self.alerts()}")

    async def ask(self, expression: str) -> list[Any]:
        """Return what a query finds now. Raises AssertionError where it is no query."""
        return await self._ask("query", query=expression)

    async def ask_range(
        self, expression: str, *, since: float, until: float, step: float
    ) -> list[Any]:
        """Return what a query finds at each step, in seconds since 1970."""
        return await self._ask(
            "query_range", query=expression, start=str(since), end=str(until), step=str(step)
        )

    async def _ask(self, call: str, **parameters: str) -> list[Any]:
        async with self._session.get(f"{self._url}/api/v1/{call}", params=parameters) as answer:
            document = await answer.json()
        assert document["status"] == "success", f"{parameters}: {document}"
        found: list[Any] = document["data"]["result"]
        return found


def _alert(each: Mapping[str, Any]) -> Alert:
    labels = dict(each["labels"])
    return Alert(
        name=labels.pop("alertname"),
        firing=each["state"] == "firing",
        since=datetime.fromisoformat(_microseconds(each["activeAt"])).timestamp(),
        labels=labels,
        annotations=each["annotations"],
    )


def _microseconds(time: str) -> str:
    """Parse a time; Prometheus prints nanoseconds."""
    head, _, fraction = time.removesuffix("Z").partition(".")
    return f"{head}.{(fraction + '000000')[:6]}+00:00"


@asynccontextmanager
async def scraping(
    folder: Path, metrics_port: int, rules: Mapping[str, Any] | None = None
) -> AsyncIterator[Prometheus]:
    """Scrape one address, and evaluate these rules, for the time of the block."""
    targets = [{"targets": [f"127.0.0.1:{metrics_port}"]}]
    config: dict[str, Any] = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "statesvc", "static_configs": targets}],
    }
    if rules is not None:
        config["rule_files"] = ["rules.yml"]
        folder.joinpath("rules.yml").write_text(
            yaml.safe_dump(dict(rules), sort_keys=False, width=10_000)
        )
    folder.joinpath("prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    with folder.joinpath("prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=log,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
            yield Prometheus(session, f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        await process.wait()
