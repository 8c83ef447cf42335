"""Digests in ids: how they are written, and how an id is compared with one without writing it down."""

import hashlib

import pytest

from events.spelling import is_short, short

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
