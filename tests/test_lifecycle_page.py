from events.vocabulary import Status
from tests.lifecycle_page import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.lifecycle_page"


def test_the_page_says_what_every_status_means() -> None:
    written = page().partition("## Moves")[0]
    assert [status.value for status in Status if f"`{status.value}`: " not in written] == []
