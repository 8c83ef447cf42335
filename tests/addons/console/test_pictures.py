"""The pictures in the pages show screens that there are."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.pictures import BYTES_MAX, EVIDENCE, FOLDER, PICTURES, Picture
from tests.world.api import Api

ROOT: Final = Path(__file__).parents[3]
SHOWN: Final = re.compile(r"!\[([^\]]*)\]\(([^)\s]+\.png)\)")


def pictures_in_pages() -> dict[Path, str]:
    """By file: its description in a page."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    return {
        (page.parent / path).resolve(): said
        for page in pages
        for said, path in SHOWN.findall(page.read_text("utf-8"))
    }


async def test_each_picture_shows_a_page_that_is_served(api: Api) -> None:
    served = (
        {resource.canonical for resource in api.client.app.router.resources()}
        if api.client.app
        else set()
    )
    assert [picture.path for picture in PICTURES if picture.path not in served] == []
    assert EVIDENCE in {picture.path for picture in PICTURES}


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_each_picture_is_there_small_and_described_where_it_is_shown(picture: Picture) -> None:
    file = FOLDER / picture.name
    assert file.stat().st_size <= BYTES_MAX
    assert len(pictures_in_pages().get(file, "")) > 10


def test_no_page_shows_a_picture_that_make_pictures_does_not_take() -> None:
    taken = {FOLDER / picture.name for picture in PICTURES}
    assert set(pictures_in_pages()) == taken == set(FOLDER.iterdir())
