"""A subscriber's server, in a process of its own that can be killed: `python -m tests.journeys.receiver PORT FILE TICKETS PAGE`.

Each POST becomes a line of FILE before it is answered; `/my-server/ticket` fetches a ticket for the stream from the URL in TICKETS with the
key in JOURNEY_KEY; any GET is the file PAGE.
"""

import base64
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import httpx

PORT, FILE, TICKETS, PAGE = sys.argv[1:]
KEY: Final = os.environ["JOURNEY_KEY"]


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/my-server/ticket":
            self._answer(_ticket(), "application/json")
            return
        received = {"headers": {name.lower(): value for name, value in self.headers.items()}, "body": base64.b64encode(body).decode()}
        with Path(FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(received) + "\n")
        self._answer(b"", "text/plain")

    def do_GET(self) -> None:
        self._answer(Path(PAGE).read_bytes(), "text/html")

    def _answer(self, body: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the journey prints what matters."""


def _ticket() -> bytes:
    answer = httpx.post(TICKETS, json={}, headers={"Authorization": f"Bearer {KEY}"}, timeout=30)
    return answer.raise_for_status().content


ThreadingHTTPServer(("127.0.0.1", int(PORT)), Receiver).serve_forever()
