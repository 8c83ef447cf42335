from statesvc.http.introduction import TAGS
from tests.openapi_document import document


def test_every_part_of_the_page_has_its_place() -> None:
    tags = {call["tags"][0] for calls in document()["paths"].values() for call in calls.values()}
    assert tags <= set(TAGS)
