"""`statesvc listen`: changes of the stream as signed notifications; a cut connection is
taken up where it ended.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from statesvc.cli import main

CHANGE = {
    "carrier_id": "ups",
    "tracking_number": "1Zü",
    "from": "in_transit",
    "to": "delivered",
    "occurred_at": "2026-03-01T14:05:00-05:00",
    "sequence": 3,
    "log_index": 7,
    "recorded_at": "2026-03-01T19:05:01Z",
}


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_it_forwards_signed_changes_and_comes_back_where_it_was_cut_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, Any, Any]] = []
    got: list[tuple[dict[str, str], bytes]] = []

    class Stream(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"], self.headers["Last-Event-ID"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            frame = (
                f"id: {len(asked)}\nevent: shipment.status_changed\ndata: {json.dumps(CHANGE)}\n\n"
            )
            self.wfile.write(f": hello\n\nretry: 1\n\n{frame}".encode())

        def log_message(self, *_: object) -> None:
            pass

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(
                (dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"])))
            )
            self.send_response(204 if len(got) > 1 else 500)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    (key_file := tmp_path / "key").write_text("ss_key")
    with serving(Stream) as service, serving(Receiver) as receiver:
        given = [
            "--url",
            service,
            "--key-file",
            str(key_file),
            "--forward-to",
            f"{receiver}/hook",
            "--carrier",
            "ups",
            "--count",
            "2",
        ]
        assert main(["listen", *given]) == 0
    printed = capsys.readouterr().out.splitlines()
    secret = printed[0].split()[2].rstrip(",")
    assert [each[2] for each in asked] == [None, "1"]
    assert {each[:2] for each in asked} == {("/v1/stream?carrier_id=ups", "Bearer ss_key")}
    for headers, body in got:
        told = Webhook(secret).verify(
            body, {name.lower(): value for name, value in headers.items()}
        )
        assert told["data"] == {
            name: CHANGE[name]
            for name in ("carrier_id", "tracking_number", "from", "to", "occurred_at", "sequence")
        }
    assert [line.split()[-1] for line in printed[1:3]] == ["500", "204"]
    assert printed[-1] == "go on with --after 2"


def test_without_a_service_or_a_url_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STATESVC_URL", raising=False)
    assert main(["listen", "--forward-to", "http://localhost:1/"]) == 2
    assert "running service" in capsys.readouterr().err


def test_a_service_that_refuses_is_told_with_what_is_wrong_and_one_that_is_away_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([503, 503, 422])

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(next(answers))
            self.end_headers()
            flaw = {"pointer": "/header/Last-Event-ID", "detail": "must be the `id` of an event"}
            self.wfile.write(
                json.dumps({"detail": "the headers break the contract", "errors": [flaw]}).encode()
            )

        def log_message(self, *_: object) -> None:
            pass

    (key_file := tmp_path / "key").write_text("ss_key")
    with serving(Refusing) as service:
        given = [
            "--url",
            service,
            "--key-file",
            str(key_file),
            "--forward-to",
            "http://localhost:1/",
            "--after",
            "abc",
        ]
        assert main(["listen", *given]) == 1
    printed = capsys.readouterr()
    assert (
        "the headers break the contract; /header/Last-Event-ID must be the `id` of an event"
        in printed.err
    )
    assert printed.out.count(f"{service} does not answer: 503; trying again") == 1
