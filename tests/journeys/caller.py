"""The caller's journey: `python -m tests.journeys.caller` generates the Python client as `make client` does and uses it.

Events in, one and many; then the shipment by its number alone, its state, its history in pages, by the order it belongs to, and the changes
from the first on, against `statesvc up`. Prints what was measured; exit code 1: a step failed.
"""

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import httpx

from tests.journeys.installation import ROOT, Installation, installation, main, require, scan, until

NUMBER: Final = "1ZJOURNEY0000000002"
WAY: Final = ("picked_up", "in_transit", "out_for_delivery", "delivered")


class Caller:
    """The generated client, with a key for each thing to do."""

    def __init__(self, package: ModuleType, service: Installation) -> None:
        self._package = package
        self._url = service.url
        keys = {scope: service.key(scope, scope) for scope in ("ingest", "read")}
        self._clients = {scope: self._client(key) for scope, key in keys.items()}

    def _client(self, key: str) -> Any:
        return self._package.AuthenticatedClient(base_url=self._url, token=key, raise_on_unexpected_status=True, timeout=httpx.Timeout(60))

    def __call__(self, call: str, *path: Any, scope: str = "read", **given: Any) -> Any:
        return importlib.import_module(f"{self._package.__name__}.api.{call}").sync(*path, client=self._clients[scope], **given)

    def model(self, name: str, **members: Any) -> Any:
        return getattr(importlib.import_module(f"{self._package.__name__}.models"), name).from_dict(members)

    def file(self, content: bytes) -> Any:
        return importlib.import_module(f"{self._package.__name__}.types").File(payload=content)


def generated(folder: Path, url: str) -> ModuleType:
    """From the document that the service serves."""
    described = folder / "openapi.json"
    described.write_bytes(httpx.get(f"{url}/openapi.json").raise_for_status().content)
    generate = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"]
    config = ROOT / "clients" / "python" / "generator.yaml"
    subprocess.run(
        [*generate, "--path", described, "--config", config, "--output-path", folder / "statesvc_client"],
        check=True,
        timeout=300,
        capture_output=True,
    )
    sys.path.insert(0, str(folder))
    return importlib.import_module("statesvc_client")


def travel() -> dict[str, object]:
    """The whole way."""
    with installation("caller") as service:
        began = time.monotonic()
        caller = Caller(generated(service.home, service.url), service)
        measured: dict[str, object] = {"generated_seconds": round(time.monotonic() - began, 1)}
        _submit(caller)
        _ask(caller)
        return measured


def _submit(caller: Caller) -> None:
    first, *others = (scan(NUMBER, status, day=day) for day, status in enumerate(WAY, 1))
    require(caller("events.submit_events", scope="ingest", body=caller.model("CanonicalEvent", **first)).verdict == "appended", "no event")
    lines = caller.file("\n".join(json.dumps(each) for each in others).encode())
    verdicts = caller("events.submit_events", scope="ingest", body=lines).results
    require([each.verdict for each in verdicts] == ["appended"] * 3, f"verdicts: {verdicts}")
    references = caller.model("References", order_id="Order 4711", metadata={"shop": "eu"})
    caller("shipments.set_shipment_references", "ups", NUMBER, scope="ingest", body=references)


def _ask(caller: Caller) -> None:
    (found,) = caller("shipments.list_shipments", tracking_number=f" {NUMBER.lower()} ").items
    require(found.status == "delivered", f"the list says {found.status}")
    (of_order,) = caller("shipments.list_shipments", reference="order 4711").items
    require(of_order.shipment_id == found.shipment_id, "another shipment belongs to the order")
    require(caller("shipments.get_shipment", found.carrier_id, found.tracking_number).version == len(WAY), "not all events")
    first = caller("shipments.get_shipment_history", "ups", NUMBER, limit=3)
    rest = caller("shipments.get_shipment_history", "ups", NUMBER, limit=3, cursor=first.next_cursor)
    require(tuple(event.status for event in (*first.items, *rest.items)) == WAY, "the history is another")
    missing = caller("shipments.get_shipment", "ups", "1ZNEVER")
    require(missing.code == "not_found", f"an unknown number: {missing}")
    until(lambda: _is_last_change(caller, "delivered"), "the delivery among the changes: they follow the sealed log")


def _is_last_change(caller: Caller, status: str) -> bool:
    changes = caller("log.list_transitions").items
    return bool(changes) and changes[-1].to == status


if __name__ == "__main__":
    sys.exit(main(travel))
