"""An S3-compatible object store of our own, as far as checkpoints need it: a real HTTP server with conditional requests."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import TestServer

_ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{}</Code><Message>no</Message></Error>'
_LISTING = (
    '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>{bucket}</Name>'
    "<KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
)
_LISTED = '<Contents><Key>{name}</Key><LastModified>2026-11-22T00:00:00.000Z</LastModified><ETag>"x"</ETag><Size>{size}</Size></Contents>'


@dataclass
class ObjectStore:
    """`objects` by path, such as `bucket/prefix/key`. While it is `down`, every request fails."""

    objects: dict[str, bytes] = field(default_factory=dict)
    down: bool = False
    endpoint: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        if self.down or not request.headers.get("Authorization", "").startswith("AWS4-HMAC-SHA256 Credential="):
            return _refusal(403, "AccessDenied")
        if "list-type" in request.query:
            return self._list(path, request.query.get("prefix", ""))
        there = self.objects.get(path)
        if request.method == "PUT":
            return await self._put(request, path, None if there is None else _tag(there))
        if there is None:
            return _refusal(404, "NoSuchKey")
        return web.Response(body=there, headers={"ETag": _tag(there), "Last-Modified": "Sun, 22 Nov 2026 00:00:00 GMT"})

    def _list(self, bucket: str, prefix: str) -> web.Response:
        names = [path.removeprefix(f"{bucket}/") for path in self.objects if path.startswith(f"{bucket}/{prefix}")]
        text = "".join(_LISTED.format(name=name, size=len(self.objects[f"{bucket}/{name}"])) for name in sorted(names))
        return web.Response(text=_LISTING.format(bucket=bucket, count=len(names), contents=text), content_type="application/xml")

    async def _put(self, request: web.Request, path: str, tag: str | None) -> web.Response:
        is_there = request.headers.get("If-None-Match") == "*" and tag is not None
        if is_there or request.headers.get("If-Match", tag) != tag:
            return _refusal(412, "PreconditionFailed")
        self.objects[path] = await request.read()
        return web.Response(headers={"ETag": _tag(self.objects[path])})


@asynccontextmanager
async def object_store() -> AsyncIterator[ObjectStore]:
    store = ObjectStore()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", store.handle)
    async with TestServer(app) as server:
        store.endpoint = str(server.make_url("/")).rstrip("/")
        yield store


def _tag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _refusal(status: int, code: str) -> web.Response:
    return web.Response(status=status, text=_ERROR.format(code), content_type="application/xml")
