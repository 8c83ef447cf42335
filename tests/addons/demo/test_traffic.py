from collections import Counter
from datetime import UTC, datetime
from itertools import islice, pairwise
from random import Random

from statesvc.addons.demo.traffic import Behaviour, Push, pushes

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def some(seed: int, count: int) -> list[Push]:
    return list(islice(pushes(Random(seed), lambda: NOW), count))


def test_the_same_seed_tells_the_same_story() -> None:
    assert some(7, 200) == some(7, 200)
    assert some(7, 200) != some(8, 200)


def test_everything_that_real_carriers_do_happens() -> None:
    seen = Counter(push.behaviour for push in some(1, 3000))
    assert set(seen) == set(Behaviour)
    assert seen[Behaviour.PLAIN] > 3000 / 2


def test_a_duplicate_repeats_the_push_before_it_byte_for_byte() -> None:
    traffic = some(2, 500)
    for before, push in pairwise(traffic):
        if push.behaviour is Behaviour.DUPLICATE:
            assert (push.carrier_id, push.body) == (before.carrier_id, before.body)
