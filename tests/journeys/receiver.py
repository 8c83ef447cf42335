"""A subscriber's server on the client, in a process of its own that can be killed:
`python receiver.py PORT FILE SECRETS PAGE`.

Each POST that `verify` takes with a secret of the file SECRETS becomes a line of FILE before it is
answered; any other is answered 401. `/my-server/ticket` fetches a ticket for the stream from URL
with KEY, both in the environment; any GET is the file PAGE.
"""

import base64
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from statesvc_client import Client, InvalidSignatureError, verify
from statesvc_client.core.api.log import create_stream_ticket
from statesvc_client.core.models.ticket_request import TicketRequest

PORT, FILE, SECRETS, PAGE = sys.argv[1:]


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/my-server/ticket":
            self._answer(_ticket(), "application/json")
            return
        try:
            verify(json.loads(Path(SECRETS).read_text("utf-8")), self.headers, body)
        except InvalidSignatureError as error:
            self._answer(str(error).encode(), "text/plain", status=401)
            return
        received = {
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": base64.b64encode(body).decode(),
        }
        with Path(FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(received) + "\n")
        self._answer(b"", "text/plain")

    def do_GET(self) -> None:
        self._answer(Path(PAGE).read_bytes(), "text/html")

    def _answer(self, body: bytes, content_type: str, *, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the journey prints what matters."""


def _ticket() -> bytes:
    with Client(os.environ["URL"], key=os.environ["KEY"]) as client:
        ticket: bytes = create_stream_ticket.sync_detailed(
            client=client.core, body=TicketRequest()
        ).content
        return ticket


ThreadingHTTPServer(("127.0.0.1", int(PORT)), Receiver).serve_forever()
