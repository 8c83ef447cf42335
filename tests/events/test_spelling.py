"""Digests in ids: how they are written, and how an id is compared with one without writing it
down.
"""

import hashlib

import pytest

from events.spelling import is_short, short, sought_forms

DIGESTS = [bytes(32), bytes([255] * 32), *(hashlib.sha256(bytes([n])).digest() for n in range(50))]


@pytest.mark.parametrize("digest", DIGESTS, ids=lambda digest: digest.hex()[:8])
def test_a_text_is_that_of_a_digest_exactly_when_it_was_written_so(digest: bytes) -> None:
    text = short(digest)
    assert is_short(text, digest)
    for place in range(len(text)):
        for other in "a7_ +-A089\u0663\u00e9\0":
            changed = text[:place] + other + text[place + 1 :]
            assert is_short(changed, digest) == (changed == text)
    for changed in ("", text[:-1], text + "a", "a" + text, text.upper(), f" {text}", f"{text}\n"):
        assert is_short(changed, digest) == (changed == text)


@pytest.mark.parametrize(
    ("sought", "number"),
    [
        ("(420)97201(9400111202555842332669)", "420972019400111202555842332669"),
        ("9611020987654312345672", "987654312345672"),
        ("1001921334250001000300779017972697", "779017972697"),
        ("000123456789012", "123456789012"),
        ("00000000123456789012", "123456789012"),
        ("(00) 340434161095002710", "340434161095002710"),
        ("340434161095002710", "00340434161095002710"),
    ],
)
def test_a_barcode_is_a_spelling_of_the_number_on_it(sought: str, number: str) -> None:
    assert number in sought_forms(sought)
