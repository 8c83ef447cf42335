"""Stub of the part of Vault's transit engine that is used, as a real HTTP server with real
ciphers.
"""

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


@dataclass
class Vault:
    """The key `transit/keys/statesvc`: `versions` holds its key material.

    `status`: answered to everything instead.
    """

    token: str = "s.token-of-the-tests"
    versions: list[bytes] = field(default_factory=lambda: [os.urandom(32)])
    status: int | None = None
    calls: list[str] = field(default_factory=list)
    url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        action = request.match_info["action"]
        self.calls.append(action)
        known = 200 if request.match_info["key"] == "statesvc" else 404
        status = self.status or (
            known if request.headers.get("X-Vault-Token") == self.token else 403
        )
        if status != 200:
            return _errors(status)
        if action == "keys":
            return web.json_response(
                {"data": {"latest_version": len(self.versions), "type": "aes256-gcm96"}}
            )
        given = await request.json()
        bound = base64.b64decode(given["associated_data"])
        if action == "encrypt":
            nonce = os.urandom(12)
            sealed = nonce + AESGCM(self.versions[-1]).encrypt(
                nonce, base64.b64decode(given["plaintext"]), bound
            )
            return web.json_response(
                {
                    "data": {
                        "ciphertext": (
                            f"vault:v{len(self.versions)}:{base64.b64encode(sealed).decode()}"
                        )
                    }
                }
            )
        _, version, encoded = given["ciphertext"].split(":")
        sealed = base64.b64decode(encoded)
        try:
            opened = AESGCM(self.versions[int(version[1:]) - 1]).decrypt(
                sealed[:12], sealed[12:], bound
            )
        except InvalidTag:
            return _errors(400)
        return web.json_response({"data": {"plaintext": base64.b64encode(opened).decode()}})

    def rotate(self) -> None:
        self.versions.append(os.urandom(32))


@asynccontextmanager
async def vault() -> AsyncIterator[Vault]:
    running = Vault()
    app = web.Application()
    app.router.add_route("*", "/v1/transit/{action}/{key}", running.handle)
    async with TestServer(app) as server:
        running.url = f"vault+{server.make_url('/v1/transit/keys/statesvc')}"
        yield running


def _errors(status: int) -> web.Response:
    return web.json_response({"errors": ["no"]}, status=status)
