"""Witnesses of C2SP tlog-witness: a real one, `aics-witness` of PyPI, and one that misbehaves.

The second is written from the specification alone, with no code of ours.
"""

import asyncio
import base64
import hashlib
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

from events.merkle.checkpoint import VerifierKey
from statesvc.settings.witnesses import Witness
from tests.world.ports import free_port
from tests.world.programs import required_witness

_START_SECONDS: Final = 20


@dataclass
class RealWitness:
    folder: Path
    name: str = "witness.example/w1"

    def _call(self, *arguments: str) -> str:
        environment = {**os.environ, "AICS_WITNESS_CONFIG": str(self.folder / "witness.json")}
        command = [required_witness(), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        return done.stdout

    def made(self, log: VerifierKey) -> str:
        """Make it, so that it knows this log; return its verifier key."""
        key = self._call("init", "--name", self.name).split()[-1]
        self.trust(log)
        return key

    def trust(self, log: VerifierKey) -> None:
        self._call("add-log", "--origin", log.name, "--vkey", str(log))

    @contextmanager
    def serving(self, key: str) -> Iterator[Witness]:
        port = free_port()
        environment = {**os.environ, "AICS_WITNESS_CONFIG": str(self.folder / "witness.json")}
        process = subprocess.Popen(
            [required_witness(), "serve", "--listen", f"127.0.0.1:{port}"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _until_answered(process, f"http://127.0.0.1:{port}/healthz")
            yield Witness(VerifierKey.parse(key, is_witness=True), f"http://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait(10)


def _until_answered(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urlopen(url, timeout=5).close()  # noqa: S310 - a server of this machine
        except (URLError, ConnectionError):
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the witness did not answer")


@dataclass
class OtherWitness:
    """Signs whatever it is sent, by Ed25519 or ML-DSA-44; `answer`: what it does instead.

    `bodies`: what it was sent.
    """

    name: str = "witness.example/other"
    is_ml_dsa: bool = False
    answer: web.Response | str = ""
    bodies: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ml_dsa = MLDSA44PrivateKey.generate()
        self._ed25519 = Ed25519PrivateKey.generate()

    @property
    def _material(self) -> bytes:
        if self.is_ml_dsa:
            return b"\x06" + self._ml_dsa.public_key().public_bytes_raw()
        return b"\x04" + self._ed25519.public_key().public_bytes_raw()

    @property
    def _key_id(self) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + self._material).digest()[:4]

    @property
    def key(self) -> str:
        return f"{self.name}+{self._key_id.hex()}+{base64.b64encode(self._material).decode()}"

    def line(self, text: str, seconds: int, *, name: str | None = None) -> str:
        """Return its signature line of a checkpoint's text."""
        time_bytes = seconds.to_bytes(8, "big")
        if self.is_ml_dsa:
            origin, size, root = text.split("\n")[:3]
            signature = self._ml_dsa.sign(
                b"subtree/v1\n\0"
                + bytes([len(self.name)])
                + self.name.encode()
                + time_bytes
                + bytes([len(origin)])
                + origin.encode()
                + bytes(8)
                + int(size).to_bytes(8, "big")
                + base64.b64decode(root)
            )
        else:
            signature = self._ed25519.sign(f"cosignature/v1\ntime {seconds}\n{text}".encode())
        blob = base64.b64encode(self._key_id + time_bytes + signature).decode()
        return f"— {name or self.name} {blob}\n"

    async def _add_checkpoint(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        self.bodies.append(body)
        text = body.split("\n\n")[1] + "\n"
        now = int(time.time())
        match self.answer:
            case web.Response() as response:
                return web.Response(
                    status=response.status, body=response.body, headers=response.headers
                )
            case "slow":
                await asyncio.sleep(2)
            case "another text":
                text = text.replace("\n", "\nx", 1)
            case "another name":
                return web.Response(text=self.line(text, now, name="witness.example/stranger"))
            case "no time":
                now = 0
            case "another note":
                return web.Response(text=f"\n{text}\n{self.line(text, now)}")
        return web.Response(text=self.line(text, now))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Witness]:
        app = web.Application()
        app.router.add_post("/add-checkpoint", self._add_checkpoint)
        async with TestServer(app) as server:
            url = str(server.make_url("")).rstrip("/")
            yield Witness(VerifierKey.parse(self.key, is_witness=True), url)
