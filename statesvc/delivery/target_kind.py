"""Kinds of targets other than HTTP, from add-ons: a check of their URLs, and a sender."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from yarl import URL

from statesvc.delivery.addresses import Network
from statesvc.delivery.outcome import Answer
from statesvc.delivery.outgoing import Destination, Login, Outgoing
from statesvc.seams import left_out, parts, sentence


class UrlFlawError(ValueError):
    """An invalid URL. The text gives the reason and the remedy without repeating it."""


class CheckedTarget(NamedTuple):
    """A URL as it is stored and shown. `better`: the scheme that encrypts."""

    url: URL
    login: Login | None
    port: int
    is_encrypted: bool
    better: str


class TargetSender(AbstractAsyncContextManager[Any], Protocol):
    @property
    def open_count(self) -> int:
        """Connections that are there."""

    async def send(self, destination: Destination, outgoing: Outgoing) -> Answer:
        """Send it, once. Every failure of the other side is an answer, not an exception."""


class TargetKind(Protocol):
    """The contract of the seam `targets`."""

    @property
    def schemes(self) -> Collection[str]:
        """Schemes of its URLs."""

    def check(self, url: URL) -> CheckedTarget:
        """Check a URL. Raises UrlFlawError."""

    def sender(
        self,
        *,
        allowed: Sequence[Network],
        source: str,
        connect_seconds: float,
        total_seconds: float,
    ) -> TargetSender:
        """Return a sender for its targets within the allowed networks."""


def target_kinds() -> Mapping[str, TargetKind]:
    """Return the kinds of targets that there are besides HTTP, by scheme."""
    kinds: Sequence[TargetKind] = tuple(parts("targets"))
    return {scheme: kind for kind in kinds for scheme in kind.schemes}


def missing_kind(scheme: str) -> str | None:
    """Say which add-on sends to URLs of this scheme, where it is off; None: none does."""
    return next(
        (
            sentence(name, f"a target {scheme}://")
            for name, addon in left_out().items()
            if scheme in addon.schemes
        ),
        None,
    )
