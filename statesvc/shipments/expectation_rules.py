"""What is expected of each carrier's shipments: the rules as operators set them, over the defaults.

An append reads them with its clock, as one text that is parsed once: what they say is in effect with the next one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import orjson
from psycopg import AsyncConnection

from projections.expectations import DEFAULT_RULES, ExpectationRules
from statesvc.database.queries import queries

_SQL = queries("statesvc.shipments", "expectation_rules")
ALL_CARRIERS: Final = "*"


@dataclass(frozen=True, slots=True)
class RuleBook:
    """`default`: of the carriers that have no rules of their own."""

    default: ExpectationRules = DEFAULT_RULES
    by_carrier: Mapping[str, ExpectationRules] = field(default_factory=dict)

    def of(self, carrier_id: str) -> ExpectationRules:
        """Those of a carrier."""
        return self.by_carrier.get(carrier_id, self.default)

    def changed(self, carrier_id: str, document: Mapping[str, Any], *, revision: int) -> "RuleBook":
        """With other rules of one carrier, or of all that have none."""
        if carrier_id == ALL_CARRIERS:
            return RuleBook(DEFAULT_RULES.changed(document, revision=revision), self.by_carrier)
        return RuleBook(self.default, {**self.by_carrier, carrier_id: self.default.changed(document, revision=revision)})


DEFAULTS: Final = RuleBook()


@lru_cache(maxsize=16)
def rule_book(text: str | None) -> RuleBook:
    """From rows of carrier, revision and rules, as JSON, `*` before all carriers; None: there are none."""
    book = DEFAULTS
    for carrier_id, revision, document in orjson.loads(text or "[]"):
        book = book.changed(carrier_id, document, revision=revision)
    return book


async def read_rules(connection: AsyncConnection[Any]) -> RuleBook:
    """Those in effect."""
    row = await (await connection.execute(_SQL["rules_in_effect"])).fetchone()
    return rule_book(row[0] if row else None)
