"""A token opens what it was signed for, until it expires; nothing else does."""

from datetime import UTC, datetime, timedelta

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from statesvc.http.keys.signed_token import TOKEN_CHARS_MAX, TokenRefusedError, TokenSigner

SIGNER = TokenSigner(bytes(range(32)))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOKEN = SIGNER.sign("stream", {"key_id": "abc"}, expires_at=NOON)


@freeze_time(NOON - timedelta(seconds=1))
def test_it_says_what_was_signed() -> None:
    assert SIGNER.read("stream", TOKEN) == {"key_id": "abc"}


@freeze_time(NOON)
def test_it_is_refused_from_its_end_on() -> None:
    with pytest.raises(TokenRefusedError, match="expired"):
        SIGNER.read("stream", TOKEN)


@freeze_time(NOON - timedelta(seconds=1))
def test_it_is_refused_for_another_purpose_under_another_key_and_with_another_end() -> None:
    for signer, purpose in ((SIGNER, "portal"), (SIGNER, ""), (TokenSigner(bytes(32)), "stream")):
        with pytest.raises(TokenRefusedError):
            signer.read(purpose, TOKEN)
    later = SIGNER.sign("stream", {"key_id": "abc"}, expires_at=NOON + timedelta(hours=1))
    with pytest.raises(TokenRefusedError):
        SIGNER.read("stream", f"{later.rpartition('.')[0]}.{TOKEN.rpartition('.')[2]}")


@freeze_time(NOON - timedelta(seconds=1))
@given(place=st.integers(0, len(TOKEN) - 1), character=st.sampled_from("AZaz09-_.=+/ \n\x00é"))
def test_no_changed_character_is_accepted(place: int, character: str) -> None:
    changed = TOKEN[:place] + character + TOKEN[place + 1 :]
    if changed != TOKEN:
        with pytest.raises(TokenRefusedError):
            SIGNER.read("stream", changed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.b",
        "x",
        TOKEN[:-1],
        TOKEN + "=",
        TOKEN + "\n",
        "é.é",
        "a" * (TOKEN_CHARS_MAX + 1),
    ],
)
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(TokenRefusedError):
        SIGNER.read("stream", text)
