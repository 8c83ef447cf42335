import pytest

from tests.corpus_shares import CORPORA, NO_CORPUS, printed_shares, shares


def test_the_page_says_what_is_true_or_less() -> None:
    if not all((corpus / "expected.json").is_file() for corpus in CORPORA):
        pytest.skip(NO_CORPUS)
    said = printed_shares()
    assert shares().keys() == said.keys() - {"all"}
    worse = {
        name: (found, said[name])
        for name, found in shares().items()
        if found.events != said[name][0]
        or found.right < said[name][1]
        or found.silent > said[name][2]
    }
    assert worse == {}, "python -m tests.corpus_shares --write"
