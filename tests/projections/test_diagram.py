from projections.diagram import PAGE, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m projections.diagram"
