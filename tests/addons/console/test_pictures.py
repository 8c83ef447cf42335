"""The pictures in the pages show screens that there are."""

import re
from pathlib import Path
from typing import Final

from tests.pictures import BYTES_MAX, EVIDENCE, FOLDER, PICTURES
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


def test_pages_show_the_pictures_that_make_pictures_takes_small_and_described() -> None:
    shown = pictures_in_pages()
    assert set(shown) == {FOLDER / picture.name for picture in PICTURES} == set(FOLDER.iterdir())
    assert [file for file in shown if file.stat().st_size > BYTES_MAX] == []
    assert [file for file, said in shown.items() if len(said) <= 10] == []
