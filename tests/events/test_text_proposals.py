import json

import pytest

from events.text_proposals import proposed
from events.vocabulary import Reason, Status
from tests.corpus_shares import CORPORA
from tests.events.carriers.test_corpus import NO_CORPUS

RIGHT_MIN = 0.9
OF_TEXTS_MIN = 0.7


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("Delivered", Status.DELIVERED, None),
        ("Zugestellt.", Status.DELIVERED, None),
        ("The parcel was <b>delivered</b> at the back door", Status.DELIVERED, None),
        ("Delivery attempted, nobody at home", Status.DELIVERY_ATTEMPTED, None),
        ("Could not be delivered", Status.DELIVERY_ATTEMPTED, None),
        ("Delivered back to the shipper", Status.RETURNED, None),
        ("Your parcel is out for delivery today", Status.OUT_FOR_DELIVERY, None),
        ("Ready for collection at the parcel shop", Status.AVAILABLE_FOR_PICKUP, None),
        ("The package is damaged", Status.EXCEPTION, Reason.DAMAGED),
        ("Arrived at sort facility", Status.IN_TRANSIT, None),
        ("Label created", Status.INFO_RECEIVED, None),
    ],
)
def test_a_text_proposes_what_such_texts_mean(
    text: str, status: Status, reason: Reason | None
) -> None:
    found = proposed(text)
    assert found is not None
    assert (found.meaning.status, found.meaning.reason) == (status, reason)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "Something new",
        "Will be delivered tomorrow",
        "Your parcel is expected to be delivered soon",
        "DLVRD7",
    ],
)
def test_a_text_that_says_nothing_clear_proposes_nothing(text: str | None) -> None:
    assert proposed(text) is None


def test_a_proposal_quotes_no_word_that_is_not_ours() -> None:
    found = proposed("Returned by J. Miller to sender")
    assert found is not None
    assert "Miller" not in found.why
    named = proposed("Signed by J. MILLER, delivered")
    assert named is not None
    assert "MILLER" not in named.why


def test_proposals_for_the_texts_of_the_corpora_are_nearly_always_right() -> None:
    texts = {
        (event["description"], event["status"])
        for corpus in CORPORA
        if (corpus / "expected.json").is_file()
        for document in json.loads((corpus / "expected.json").read_text("utf-8"))
        for event in document["events"]
        if event.get("description") and event.get("status") in {status.value for status in Status}
    }
    if not texts:
        pytest.skip(NO_CORPUS)
    made = [
        (found.meaning.status, status)
        for text, status in texts
        if (found := proposed(text)) is not None
    ]
    assert len(made) / len(texts) >= OF_TEXTS_MIN
    assert sum(found == status for found, status in made) / len(made) >= RIGHT_MIN
