"""The URL that was registered is the one that is requested, byte for byte."""

import asyncio

import pytest

from statesvc.delivery.addresses import parse_networks
from statesvc.delivery.http_sender import HttpSender
from statesvc.delivery.webhook_url import webhook_url
from statesvc.subscriptions.url import UrlRefusedError, checked_url

LOOPBACK = parse_networks(["127.0.0.0/8"])


@pytest.mark.parametrize(
    ("registered", "requested"),
    [
        ("/?sp=%2Ftriggers%2Fmanual&sig=a%2Bb%2Fc", None),
        ("/%40%28%7E%3A%41/(a)~:A@b", None),
        ("/a?x=%zz&y=%&z=100%25", None),
        ("/a/../b/./c//d", None),
        ("/a;b=c,d!$'*+?a[]=1&b=c+d%20e&&=", None),
        ("?a=b", "/?a=b"),
        ("", "/"),
        ("/a#part", "/a"),
        ("/\u00fc?\u00e9=%C3%A9", "/%C3%BC?%C3%A9=%C3%A9"),
        ("/a|b?{c}=<d>", "/a%7Cb?%7Bc%7D=%3Cd%3E"),
    ],
)
async def test_path_and_query_are_stored_and_requested_as_registered(
    registered: str, requested: str | None
) -> None:
    wanted = requested or registered
    lines: list[bytes] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append(await reader.readline())
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server, HttpSender(allowed=LOOPBACK, total_seconds=5) as sender:
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        stored, _ = await checked_url(origin + registered, LOOPBACK)
        assert stored == origin + wanted
        assert (await checked_url(stored, LOOPBACK))[0] == stored
        assert (await sender.send(stored, headers={}, body=b"{}")).status_code == 204
    assert lines == [f"POST {wanted} HTTP/1.1\r\n".encode()]


async def test_a_plain_url_whose_name_leads_nowhere_is_told_so() -> None:
    with pytest.raises(UrlRefusedError, match="whose address cannot be found here"):
        await checked_url("http://no-such-host.invalid/hook", LOOPBACK)
    with pytest.raises(UrlRefusedError, match="must be https"):
        await checked_url("http://no-such-host.invalid/hook", ())


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("HTTPS://Shop.Example.COM/A", "https://shop.example.com/A"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
        ("https://[2001:DB8::9]:8443/a", "https://[2001:db8::9]:8443/a"),
    ],
)
def test_the_host_is_written_as_it_is_asked_for(text: str, written: str) -> None:
    assert str(webhook_url(text)) == written
