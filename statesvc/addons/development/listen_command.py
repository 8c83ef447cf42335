"""`statesvc listen --forward-to URL`: send a service's changes to a developer's machine.

Follows the stream of a service and posts each change of a status as a thin notification, signed
with a secret that is made and printed at the start. A lost connection is resumed at its end; a
receiver's failure is reported, and not tried again.
"""

import argparse
import json
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from statesvc.cli.command_error import CommandError
from statesvc.cli.output import write_line
from statesvc.cli.service_profile import Service, service_of
from statesvc.delivery.signing import shared_text, signed_headers

_CHANGED: Final = "shipment.status_changed"
# The service sends a comment every 15 s.
_SILENCE_SECONDS: Final = 45.0
_FORWARD_SECONDS: Final = 15.0
_DATA: Final = ("carrier_id", "tracking_number", "from", "to", "occurred_at", "sequence")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--forward-to",
        required=True,
        metavar="URL",
        help="your receiver: http://localhost:3000/hook",
    )
    parser.add_argument(
        "--after",
        metavar="ID",
        help="begin behind this change, `-1`: from the first on; default: from now on",
    )
    parser.add_argument(
        "--carrier",
        action="append",
        default=[],
        metavar="ID",
        help="only of this carrier; may stand more than once",
    )
    parser.add_argument(
        "--status",
        action="append",
        default=[],
        metavar="S",
        help="only to this status; may stand more than once",
    )
    parser.add_argument("--count", type=int, metavar="N", help="end after so many")


def run(options: argparse.Namespace) -> int:
    """Forward until it is interrupted."""
    service = service_of(options)
    if service is None:
        raise CommandError(
            "listen follows a running service: --url URL and --key-file FILE, or a profile",
            exit_code=2,
        )
    target = urlsplit(options.forward_to)
    if target.scheme not in {"http", "https"} or not target.hostname:
        raise CommandError("--forward-to must be an http or https URL", exit_code=2)
    key = secrets.token_bytes(32)
    _say(f"signed with {shared_text(key)}, as long as this runs")
    forwarded = 0
    last_id = options.after
    try:
        for change in _changes(service, options):
            last_id = change.id
            _say(
                f"{change.id}  {change.data['tracking_number']} {change.data['to']} "
                f" {_forward(options.forward_to, key, change)}"
            )
            forwarded += 1
            if forwarded == options.count:
                break
    except KeyboardInterrupt:
        pass
    if last_id is not None:
        write_line(f"go on with --after {last_id}")
    return 0


@dataclass(frozen=True, slots=True)
class StreamedChange:
    id: str
    data: Mapping[str, Any]


def _changes(service: Service, options: argparse.Namespace) -> Iterator[StreamedChange]:
    last_id, pause_seconds = options.after, 1.0
    told: str | None = None
    query = urlencode(
        [
            *(("carrier_id", each) for each in options.carrier),
            *(("status", each) for each in options.status),
        ]
    )
    while True:
        headers = {
            "Authorization": f"Bearer {service.key}",
            "Accept": "text/event-stream",
            "Prefer": "handling=strict",
        }
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        try:
            with _opened(Request(f"{service.url}/v1/stream?{query}", headers=headers)) as answer:  # noqa: S310 - checked by its profile
                told = None
                for event in _events(answer):
                    last_id = event.get("id", last_id)
                    pause_seconds = (
                        float(event["retry"]) / 1000 if "retry" in event else pause_seconds
                    )
                    if event.get("event") == "reset":
                        raise CommandError(
                            f"the log does not have {last_id} any more: begin anew without --after"
                        )
                    if event.get("event") == _CHANGED:
                        yield StreamedChange(event["id"], json.loads(event["data"]))
        except (URLError, OSError, HTTPException) as error:
            # cut off, or silent for too long: come back
            told = _told(service, error, told)
        time.sleep(pause_seconds)


def _opened(request: Request) -> HTTPResponse:
    try:
        opened: HTTPResponse = urlopen(request, timeout=_SILENCE_SECONDS)  # noqa: S310 - as above
    except HTTPError as error:
        with error:
            if error.code in {429, 502, 503, 504}:
                raise OSError(error.code) from None
            raise CommandError(
                f"{request.host} answered {error.code}: {_detail(error.read())}"
            ) from None
    return opened


def _detail(content: bytes) -> str:
    try:
        problem = json.loads(content)
    except ValueError:
        return "no service of statesvc, or a proxy before it"
    return "; ".join(
        [
            problem.get("detail", ""),
            *(f"{flaw['pointer']} {flaw['detail']}" for flaw in problem.get("errors", ())),
        ]
    )


def _say(line: str) -> None:
    """Write a line at once, into a pipe or a file too."""
    write_line(line)
    sys.stdout.flush()


def _told(service: Service, error: Exception, told: str | None) -> str:
    """Say why there is no connection, once as long as it is the same."""
    why = str(getattr(error, "reason", error)) or type(error).__name__
    if why != told:
        _say(f"{service.url} does not answer: {why}; trying again")
    return why


def _events(answer: HTTPResponse) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for line in answer:
        name, _, value = line.decode().rstrip("\r\n").partition(":")
        if name:
            event[name] = value.removeprefix(" ")
        elif event:
            yield event
            event = {}


def _forward(url: str, key: bytes, change: StreamedChange) -> str:
    """Post it, and return a sentence about the outcome."""
    data = {name: change.data[name] for name in _DATA}
    body = json.dumps(
        {"type": _CHANGED, "timestamp": change.data["recorded_at"], "data": data},
        ensure_ascii=False,
    ).encode()
    headers = signed_headers(
        [key], webhook_id=f"l1-{change.id}", timestamp=int(time.time()), body=body
    )
    try:
        with urlopen(  # noqa: S310 - checked
            Request(url, data=body, headers=headers, method="POST"),  # noqa: S310 - checked
            timeout=_FORWARD_SECONDS,
        ) as answer:
            return str(answer.status)
    except HTTPError as error:
        return str(error.code)
    except (URLError, OSError, HTTPException) as error:
        return f"no answer: {getattr(error, 'reason', error)}"
