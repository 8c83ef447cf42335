"""Rules for what is expected of each carrier's shipments: the operators' over the defaults.

An append reads them with its clock, as a text that is parsed once: a change is in effect with the
next append.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson
from psycopg import AsyncConnection

from events.parsing.service_name import (
    SERVICE_CHARACTERS_MAX,
    SERVICE_RULE,
    service_key,
    service_name,
)
from projections.expectations import DEFAULT_RULES, ExpectationRules
from statesvc.database.queries import queries

_SQL = queries("statesvc.shipments", "expectation_rules")
ALL_CARRIERS: Final = "*"
ALL_SERVICES: Final = ""


class RuleScope(NamedTuple):
    """Scope of rules. `service` is spelled as it is compared."""

    carrier_id: str
    service: str = ALL_SERVICES

    @property
    def wider(self) -> "RuleScope":
        """The scope that applies where this scope has no rules."""
        return EVERYTHING if self.service == ALL_SERVICES else RuleScope(self.carrier_id)

    def covers(self, carrier_id: str, service: str | None) -> bool:
        """Return whether it covers this carrier and service, as printed."""
        if self.carrier_id not in (ALL_CARRIERS, carrier_id):
            return False
        # the key, for carriers spell one service in several ways
        return self.service in (ALL_SERVICES, service_key(service))

    def __str__(self) -> str:
        return (
            f"carrier {self.carrier_id}"
            if self.service == ALL_SERVICES
            else f"carrier {self.carrier_id}, service {self.service}"
        )


EVERYTHING: Final = RuleScope(ALL_CARRIERS)


class NoRuleScopeError(ValueError):
    """No scope of rules was named."""


def rule_scope(carrier_id: str, service: str | None) -> RuleScope:
    """Return the scope; `all`: all carriers.

    Case and spelling are ignored. Raises NoRuleScopeError.
    """
    if carrier_id in {"all", ALL_CARRIERS}:
        if service is not None:
            raise NoRuleScopeError("a service is one carrier's: name the carrier")
        return EVERYTHING
    if service is None:
        return RuleScope(carrier_id)
    key = service_key(service_name(service))
    if key is None or len(key) > SERVICE_CHARACTERS_MAX:
        raise NoRuleScopeError(f"the service {SERVICE_RULE}")
    return RuleScope(carrier_id, key)


@dataclass(frozen=True, slots=True)
class RuleBook:
    """The most specific wins: a carrier's service, the carrier, `default`.

    Services are spelled as they are compared.
    """

    default: ExpectationRules = DEFAULT_RULES
    by_carrier: Mapping[str, ExpectationRules] = field(default_factory=dict)
    by_service: Mapping[tuple[str, str], ExpectationRules] = field(default_factory=dict)

    def of(self, carrier_id: str, service: str | None = None) -> ExpectationRules:
        """Return the rules of this carrier and service, as printed.

        None: the service is unknown.
        """
        of_service = (
            self.by_service.get((carrier_id, service_key(service) or ""))
            # most installations have no rules for services: the spelling is not computed then
            if self.by_service
            else None
        )
        return of_service or self.by_carrier.get(carrier_id, self.default)

    def changed(
        self, scope: RuleScope, document: Mapping[str, Any], *, revision: int
    ) -> "RuleBook":
        """Return the book with the rules of a scope, laid over those of the wider scopes."""
        if scope == EVERYTHING:
            return replace(self, default=DEFAULT_RULES.changed(document, revision=revision))
        # laid over the wider scope, so a rule need only name the hours that differ
        rules = self.of(*scope.wider).changed(document, revision=revision)
        if scope.service == ALL_SERVICES:
            return replace(self, by_carrier={**self.by_carrier, scope.carrier_id: rules})
        return replace(self, by_service={**self.by_service, scope: rules})


DEFAULTS: Final = RuleBook()


@lru_cache(maxsize=16)
def rule_book(text: str | None) -> RuleBook:
    """Parse rows of carrier, service, revision and rules, as JSON, the wider before the
    narrower; None: there are none.
    """
    book = DEFAULTS
    for carrier_id, service, revision, document in orjson.loads(text or "[]"):
        book = book.changed(RuleScope(carrier_id, service), document, revision=revision)
    return book


async def read_rules(connection: AsyncConnection[Any]) -> RuleBook:
    row = await (await connection.execute(_SQL["rules_in_effect"])).fetchone()
    return rule_book(row[0] if row else None)
