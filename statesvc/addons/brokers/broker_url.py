"""URLs of brokers: `scheme://[user:password@]host[:port]/path?options`. Pure.

The URL is stored and shown without its login; the login is sealed.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from yarl import URL

from statesvc.delivery.outgoing import Login
from statesvc.delivery.target_kind import UrlFlawError


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUrl:
    """The parts of a URL without its login.

    `path`: its segments, decoded; `tls`: the connection must be encrypted.
    """

    scheme: str
    host: str
    port: int
    tls: bool
    path: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def netloc(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def segments(self, *names: str) -> tuple[str, ...]:
        """Return the segments of the path, one for each name.

        Raises UrlFlawError for another number.
        """
        if len(self.path) != len(names):
            raise UrlFlawError(
                f"must be written {self.scheme}://host/{'/'.join(names)}; percent-encode a slash"
                " inside a part"
            )
        return self.path

    def check_options(self, known: Collection[str]) -> None:
        """Check the options. Raises UrlFlawError for unknown ones."""
        for name in self.options:
            if name not in known:
                raise UrlFlawError(
                    f"has an option that {self.scheme} does not know; it knows"
                    f" {', '.join(sorted(known)) or 'none'}"
                )


def split_login(url: URL) -> tuple[URL, Login | None]:
    """Return the URL as it may be shown, and the login that it held."""
    if url.user is None and url.password is None:
        return url, None
    return url.with_user(None), Login(user=url.user or "", password=url.password)


def read_url(url: URL, *, default_port: int, tls: bool) -> BrokerUrl:
    """Parse a URL without login. `UrlFlawError` where it is not of the common form."""
    host = url.host
    if not host:
        raise UrlFlawError("must name a host")
    if len(set(url.query.keys())) != len(url.query):
        raise UrlFlawError("has an option twice")
    return BrokerUrl(
        scheme=url.scheme,
        host=host,
        port=url.port or default_port,
        tls=tls,
        path=tuple(unquote(segment) for segment in url.raw_path.removeprefix("/").split("/")),
        options=dict(url.query),
    )
