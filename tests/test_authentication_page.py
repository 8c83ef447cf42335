"""The page says of each carrier what the code does."""

from tests.authentication_page import table, written


def test_the_page_has_the_table_of_the_carriers() -> None:
    assert written() == table(), "python -m tests.authentication_page --write"
