"""Brokers as a kind of target."""

from collections.abc import Collection, Sequence

from yarl import URL

from statesvc.addons.brokers.broker_url import split_login
from statesvc.addons.brokers.dialling import Dialler
from statesvc.addons.brokers.links import Links
from statesvc.addons.brokers.table import BY_SCHEME, ClientMissingError
from statesvc.delivery.addresses import Network
from statesvc.delivery.target_kind import CheckedTarget, UrlFlawError


class BrokerTargets:
    @property
    def schemes(self) -> Collection[str]:
        return BY_SCHEME.keys()

    def check(self, url: URL) -> CheckedTarget:
        broker = BY_SCHEME[url.scheme]
        shown, login = split_login(url)
        parts = broker.read(shown)
        try:
            broker.client().check(parts, login)
        except ClientMissingError as error:
            raise UrlFlawError(str(error)) from None
        better = next(scheme for scheme, one in broker.schemes.items() if one.tls)
        return CheckedTarget(shown, login, parts.port, parts.tls, better)

    def sender(
        self,
        *,
        allowed: Sequence[Network],
        source: str,
        connect_seconds: float,
        total_seconds: float,
    ) -> Links:
        return Links(
            Dialler(allowed),
            source=source,
            connect_seconds=connect_seconds,
            total_seconds=total_seconds,
        )


BROKER_TARGETS = BrokerTargets()
