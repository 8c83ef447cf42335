"""The examples of the API document, recorded while a generated client makes every call:
`python -m tests.call_examples` writes them anew.

Ids, times and secrets differ from run to run; what is written has others in their
place, the same each time.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import httpx

FILE: Final = Path(__file__).parents[1] / "statesvc" / "api" / "call_examples.json"
VARIABLE: Final = "STATESVC_TEST_EXAMPLES"
"""Names the file that the journey of the generated client writes its examples to; unset, it
compares their places.
"""
_FIXTURES: Final[Mapping[tuple[str, ...], Path]] = {
    ("receive_webhook", "request", "application/xml"): Path(__file__).parent
    / "events"
    / "carriers"
    / "fixtures"
    / "bpost"
    / "two_items.xml",
}
"""Requests that no client generated from the document sends."""
_ITEMS_MAX: Final = 2
_UUID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_NOW: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:\+00:00|Z)")
"""Clocks have fractions of a second, what carriers print has none."""
_HASH: Final = re.compile(r"\b[0-9a-f]{64}\b")
_SECRETS: Final = {
    re.compile(r"http://127\.0\.0\.1:\d+/livez"): "https://example.com/hooks",
    re.compile(r"\beyJ[\w-]+(?:\.[\w-]+){1,2}"): "eyJleHAiOjE3Nzc2MjYwMDB9.c2lnbmF0dXJl",
    re.compile(
        r"\bss_[0-9a-f]{12}_[\w-]{43}"
    ): "ss_0123456789ab_C2FVsBQIhrscChlQIMV-b5sSYspob7oDC2FVsBQIhrs",
    re.compile(r'"[0-9a-f]{12}"'): '"0123456789ab"',
    re.compile(
        r'"[^"]+-(ingress|api|worker|notifier|sealer)-\d+-[0-9a-f]{8}"'
    ): r'"host-\1-100-01234567"',
    re.compile(r'("last_pushes": \{"\w+": )[\d.]+'): r"\g<1>1777881600.25",
    re.compile(r'("\w+_seconds(?:_ago)?": )\d+\.\d+'): r"\g<1>0.25",
    re.compile(r'("database_bytes": )\d+'): r"\g<1>15000000",
    re.compile(r"\bwhsec_[\w+/=-]+"): "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
    re.compile(r"\bwhpk_[\w+/=-]+"): "whpk_C2FVsBQIhrscChlQIMV+b5sSYspob7oDAAAAAAA=",
}


class ExampleRecorder:
    """A hook of httpx: stores what was sent and answered well, of each operation the longest."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._calls = [
            (re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), method.upper(), call)
            # a path without a variable goes before one with
            for path, calls in sorted(
                document["paths"].items(), key=lambda path: path[0].count("{")
            )
            for method, call in calls.items()
        ]
        self._found: dict[tuple[str, ...], Any] = {}

    async def __call__(self, response: httpx.Response) -> None:
        """Record a response; called by httpx."""
        request = response.request
        call = next(
            call
            for path, method, call in self._calls
            if method == request.method and path.fullmatch(request.url.path)
        )
        documented = call["responses"].get(str(response.status_code), {}).get("content", {})
        if not response.is_success or "text/event-stream" in documented:
            return
        sent = request.headers.get("content-type", "")
        if sent in call.get("requestBody", {}).get("content", {}):
            self._keep((call["operationId"], "request", sent), request.content.decode())
        answered = response.headers.get("content-type", "").partition(";")[0]
        if answered in documented:
            place = (call["operationId"], "responses", str(response.status_code), answered)
            self._keep(place, (await response.aread()).decode())

    def _keep(self, place: tuple[str, ...], body: str) -> None:
        match place[-1]:
            case "application/json":
                example = json.loads(body)
            case "application/x-www-form-urlencoded":
                example = dict(parse_qsl(body))
            case _:
                example = body
        if place not in self._found or len(json.dumps(example)) > len(
            json.dumps(self._found[place])
        ):
            self._found[place] = example

    def stored(self) -> dict[str, Any]:
        """Return the examples as the document takes them; written, where the variable names a
        file.
        """
        examples = _settled(self._examples())
        if file := os.environ.get(VARIABLE):
            Path(file).write_text(
                json.dumps(examples, indent=1, ensure_ascii=False) + "\n", "utf-8"
            )
        return examples

    def _examples(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        fixtures: dict[tuple[str, ...], Any] = {
            place: file.read_text("utf-8") for place, file in _FIXTURES.items()
        }
        for place, example in sorted((self._found | fixtures).items()):
            at = found
            for step in place[:-1]:
                at = at.setdefault(step, {})
            at[place[-1]] = _short(example)
        return found


def _short(value: Any) -> Any:
    """Shorten lists to a few items."""
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value[:_ITEMS_MAX]]
    return value


def _settled(examples: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(examples)
    for pattern, instead in _SECRETS.items():
        text = pattern.sub(instead, text)
    ids = {
        found: f"00000000-0000-4000-8000-{number:012}"
        for number, found in enumerate(dict.fromkeys(_UUID.findall(text)), start=1)
    }
    text = _UUID.sub(lambda found: ids[found[0]], text)
    instants = {found: place for place, found in enumerate(dict.fromkeys(_NOW.findall(text)))}
    text = _NOW.sub(
        lambda found: (
            f"2026-05-04T08:{instants[found[0]] // 60:02}:{instants[found[0]] % 60:02}.250000+00:00"
        ),
        text,
    )
    hashes = {
        found: f"{number:064x}"
        for number, found in enumerate(dict.fromkeys(_HASH.findall(text)), start=1)
    }
    settled: dict[str, Any] = json.loads(_HASH.sub(lambda found: hashes[found[0]], text))
    return settled


def places(examples: Mapping[str, Any]) -> set[tuple[str, ...]]:
    """Return the operations, statuses and media types of which there are some."""
    requests = {
        (name, "request", kind)
        for name, each in examples.items()
        for kind in each.get("request", {})
    }
    responses = {
        (name, status, kind)
        for name, each in examples.items()
        for status, found in each.get("responses", {}).items()
        for kind in found
    }
    return requests | responses


if __name__ == "__main__":
    journey = (sys.executable, "-m", "pytest", "-n", "0", "tests/clients/test_python_client.py")
    sys.exit(
        subprocess.run(journey, env={**os.environ, VARIABLE: str(FILE)}, check=False).returncode
    )
