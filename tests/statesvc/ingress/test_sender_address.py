"""Sender's address of a request: what a stranger writes is not believed, what a
trusted proxy writes is.
"""

from ipaddress import ip_address, ip_network

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from statesvc.ingress.carrier_authenticator import is_within, sender_address

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


class Transport:
    def __init__(self, remote: str) -> None:
        self._remote = remote

    def get_extra_info(self, name: str, default: object = None) -> object:
        return (self._remote, 1234) if name == "peername" else default


@pytest.mark.parametrize(
    ("remote", "forwarded", "expected"),
    [
        ("20.65.16.22", [], "20.65.16.22"),
        ("20.65.16.22", ["1.1.1.1"], "20.65.16.22"),
        ("10.0.0.1", ["20.65.16.22"], "20.65.16.22"),
        ("10.0.0.1", ["1.1.1.1, 20.65.16.22"], "20.65.16.22"),
        ("10.0.0.1", ["1.1.1.1", "20.65.16.22, 10.0.0.2"], "20.65.16.22"),
        ("10.0.0.1", ["20.65.16.22, fd00::1"], "20.65.16.22"),
        ("::ffff:10.0.0.1", ["::ffff:20.65.16.22"], "20.65.16.22"),
        ("10.0.0.1", ["20.65.16.22, unknown"], None),
        ("10.0.0.1", ["20.65.16.22:443"], "20.65.16.22"),
        ("10.0.0.1", ["1.1.1.1, 20.65.16.22:51234, 10.0.0.2:80"], "20.65.16.22"),
        ("10.0.0.1", ["[2001:db8::9]"], "2001:db8::9"),
        ("10.0.0.1", ["[2001:db8::9]:443"], "2001:db8::9"),
        ("10.0.0.1", ['"[2001:db8::9]:443"'], "2001:db8::9"),
        ("10.0.0.1", ['"20.65.16.22"'], "20.65.16.22"),
        ("10.0.0.1", ["[::ffff:20.65.16.22]:443, [fd00::1]:80"], "20.65.16.22"),
        ("10.0.0.1", ["2001:db8::9"], "2001:db8::9"),
        ("10.0.0.1", ["20.65.16.22:443x"], None),
        ("10.0.0.1", ["[20.65.16.22"], None),
        ("10.0.0.1", ['"20.65.16.22'], None),
        ("10.0.0.1", ["[2001:db8::9]443"], None),
        ("10.0.0.1", [""], None),
        ("10.0.0.1", [], "10.0.0.1"),
        ("", [], None),
    ],
)
def test_only_a_trusted_proxy_says_where_a_request_comes_from(
    remote: str, forwarded: list[str], expected: str | None
) -> None:
    headers = CIMultiDict([("X-Forwarded-For", value) for value in forwarded])
    request = make_mocked_request("POST", "/", headers=headers, transport=Transport(remote))
    assert sender_address(request, PROXIES) == (None if expected is None else ip_address(expected))


def test_an_address_of_the_other_family_is_in_no_network() -> None:
    assert not is_within(ip_address("::1"), (ip_network("0.0.0.0/0"),))
    assert is_within(ip_address("20.65.16.23"), (ip_network("20.65.16.22/31"),))
