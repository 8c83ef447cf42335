"""Corrections, applied before the fold: the facts without everything that was retracted.

Our own corrections (`c1-`) form chains; the end of a chain replaces the reading of the event at its
root. A carrier's correction acts on top of that reading: on the event that it names, where the
latest correction wins, or, without a name, on the latest earlier scan that it can mean and that
still counts. Events are never deleted: a retracted scan stays as a fact that does not move the
status. The result depends on the set of facts, never on their order of arrival.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from events.vocabulary import Kind
from projections.fact import Fact

OWN_PREFIX: Final = "c1-"
_BY_KEY: Final = attrgetter("key")

_ARRIVALS: Final = frozenset({"AR"})
_DEPARTURES: Final = frozenset({"DP"})
_UNLOADS: Final = frozenset({"UL"})
_PICKUPS: Final = frozenset({"PU", "PC", "PT", "OR", "XD"})

# (carrier_id, code of a retraction that names no event) -> codes of the scans that it can mean. Any
# other can mean any scan.
FAMILIES: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("ups", "CA"): _ARRIVALS,
    ("ups", "UA"): _ARRIVALS,
    ("ups", "CD"): _DEPARTURES,
    ("ups", "UD"): _DEPARTURES,
    ("ups", "CL"): _UNLOADS,
    ("ups", "VP"): _PICKUPS,
}


@dataclass(frozen=True, slots=True)
class Corrected:
    """Corrected facts. `pending`: named but absent events.

    `unbound`: a correction has no event to correct. `corrected_by`: for each event that now
    reads differently, the correction that changed it.
    """

    facts: list[Fact]
    corrections: int
    pending: frozenset[str]
    unbound: bool
    corrected_by: Mapping[str, str]


def correct(facts: Mapping[str, Fact]) -> Corrected:
    """Apply the corrections among `facts`, which are keyed by event id."""
    corrections = sorted(
        (fact for fact in facts.values() if fact.kind is Kind.CORRECTION), key=_BY_KEY
    )
    if not corrections:
        return Corrected(list(facts.values()), 0, frozenset(), unbound=False, corrected_by={})
    run = _Corrections(dict(facts))
    run.apply_own([fact for fact in corrections if _own(fact)])
    theirs = [fact for fact in corrections if not _own(fact)]
    run.apply_targeted([fact for fact in theirs if fact.corrects is not None])
    run.apply_untargeted([fact for fact in theirs if fact.corrects is None])
    return Corrected(
        list(run.facts.values()),
        len(corrections),
        frozenset(run.pending),
        unbound=run.unbound,
        corrected_by=run.corrected_by,
    )


def _own(fact: Fact) -> bool:
    return fact.kind is Kind.CORRECTION and fact.event_id.startswith(OWN_PREFIX)


def _reread(fact: Fact, correction: Fact) -> Fact:
    """Return `fact` as `correction` reads it: retracted, or with another status at its old time.

    An estimate that it carried is kept.
    """
    if correction.status is None or fact.enriches:
        estimate = None if fact.enriches else fact.estimated_delivery
        return replace(
            fact,
            kind=Kind.INFO,
            status=None,
            reason=None,
            corrects=None,
            signer_digest=None,
            estimated_delivery=estimate,
        )
    return replace(
        fact, kind=Kind.SCAN, status=correction.status, reason=correction.reason, corrects=None
    )


class _Corrections:
    __slots__ = ("corrected_by", "facts", "pending", "unbound")

    def __init__(self, facts: dict[str, Fact]) -> None:
        self.facts = facts
        self.pending: set[str] = set()
        self.unbound = False
        self.corrected_by: dict[str, str] = {}

    def apply_own(self, corrections: list[Fact]) -> None:
        """Follow each chain from its root to its end.

        Data that the end carries (a signer, an estimate) becomes the root's enrichment.
        """
        successors = defaultdict(list)
        for fact in corrections:
            del self.facts[fact.event_id]
            successors[fact.anchor or fact.corrects or ""].append(fact)
        reached: set[str] = set()
        for root_id in list(successors):
            root = self.facts.get(root_id)
            if root is None:
                continue
            end = None
            following = successors[root_id]
            while following:
                end = following[-1]
                reached.update(fact.event_id for fact in following)
                following = successors.pop(end.event_id, [])
            if end is not None:
                self._apply(end, root)
                self.facts[end.event_id] = replace(
                    end, kind=Kind.INFO, status=None, reason=None, anchor=root_id
                )
        for fact in corrections:
            if fact.event_id not in reached:
                self._miss(fact.anchor or fact.corrects)

    def apply_targeted(self, corrections: list[Fact]) -> None:
        """Apply the latest first, so that a retracted correction has no effect.

        Only a later correction can retract it.
        """
        settled: set[str] = set()
        for correction in reversed(corrections):
            target_id = correction.corrects
            if self.facts[correction.event_id].kind is not Kind.CORRECTION or target_id in settled:
                continue
            target = self.facts.get(target_id or "")
            if target is None:
                self._miss(target_id)
            elif target.kind is Kind.CORRECTION and target.key >= correction.key:
                self._miss(None)
            else:
                settled.add(target.event_id)
                self._apply(correction, target)

    def apply_untargeted(self, corrections: list[Fact]) -> None:
        """Apply the earliest first: each undoes the latest scan before it that still counts."""
        valid = sorted(
            (fact for fact in self.facts.values() if fact.kind is Kind.SCAN and fact.status),
            key=_BY_KEY,
        )
        for correction in corrections:
            if self.facts[correction.event_id].kind is not Kind.CORRECTION:
                continue
            place = bisect_left(valid, correction.key, key=_BY_KEY) - 1
            while place >= 0 and not can_mean(correction, valid[place]):
                place -= 1
            if place < 0:
                self._miss(None)
                continue
            corrected = self._apply(correction, valid.pop(place))
            if corrected.kind is Kind.SCAN:
                insort(valid, corrected, key=_BY_KEY)

    def _apply(self, correction: Fact, target: Fact) -> Fact:
        corrected = self.facts[target.event_id] = _reread(target, correction)
        self.corrected_by[target.event_id] = correction.event_id
        return corrected

    def _miss(self, target_id: str | None) -> None:
        self.unbound = True
        if target_id is not None:
            self.pending.add(target_id)


def can_mean(retraction: Fact, scan: Fact) -> bool:
    """Return whether `retraction` can be about `scan`, a scan before it that still counts."""
    family = FAMILIES.get((retraction.carrier_id, retraction.raw_code or ""))
    return family is None or scan.raw_code in family
