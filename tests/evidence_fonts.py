"""`python -m tests.evidence_fonts FOLDER`: writes `statesvc/addons/evidence/fonts/` again, with
`coverage.csv`: what the fonts print.

FOLDER holds Debian's fonts-noto-core (20201225-1), fonts-nanum (20200506-1) and
fonts-droid-fallback (1:6.0.1r16-1.1), unpacked by `dpkg-deb -x`. Hints for screens are left out,
and of the two large fonts what others print already. The subset of Nanum Gothic has another name,
as its licence asks of modified versions.
"""

import csv
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

FONTS: Final = Path(__file__).parents[1] / "statesvc" / "addons" / "evidence" / "fonts"
SCRIPTS: Final = (
    *(
        "Arabic",
        "Armenian",
        "Bengali",
        "Devanagari",
        "Ethiopic",
        "Georgian",
        "Gujarati",
        "Gurmukhi",
        "Hebrew",
        "Kannada",
        "Khmer",
    ),
    *("Lao", "Malayalam", "Myanmar", "Sinhala", "Tamil", "Telugu", "Thai"),
)
BIDI_CONTROLS: Final = frozenset(
    {0x200E, 0x200F, 0x061C, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
)
"""They change the order in which other text is read: not printed, so that nobody can make a
line say something else.
"""


@dataclass(frozen=True, slots=True)
class SubsetFont:
    """Characters of a file (None: all), and the file that they become; `family`
    where it must be renamed.
    """

    source: str
    name: str
    characters: frozenset[int] | None = None
    family: str | None = None


def ranges(*bounds: tuple[int, int]) -> frozenset[int]:
    return frozenset(character for first, last in bounds for character in range(first, last + 1))


HAN: Final = ranges(
    (0x2E80, 0x30FF), (0x3200, 0x9FFF), (0xF900, 0xFAFF), (0xFE30, 0xFE4F), (0xFF00, 0xFFEF)
)
HANGUL: Final = ranges((0x1100, 0x11FF), (0x3131, 0x318E), (0xAC00, 0xD7A3))
ARROWS: Final = ranges((0x2190, 0x21FF), (0x2200, 0x22FF))
WANTED: Final = (
    *(
        SubsetFont(f"truetype/noto/NotoSans-{weight}.ttf", f"NotoSans-{weight}.ttf")
        for weight in ("Regular", "Bold")
    ),
    *(
        SubsetFont(f"truetype/noto/NotoSans{script}-Regular.ttf", f"NotoSans{script}.ttf")
        for script in SCRIPTS
    ),
    SubsetFont("truetype/noto/NotoSansMath-Regular.ttf", "NotoSansMath.ttf", ARROWS),
    SubsetFont("truetype/nanum/NanumGothic.ttf", "Hangul.ttf", HANGUL, "Statesvc Hangul"),
    SubsetFont("truetype/droid/DroidSansFallbackFull.ttf", "DroidSansFallback.ttf", HAN),
)


def write(font: SubsetFont, source: Path) -> None:
    options = Options(
        hinting=False,
        layout_features=["*"],
        name_IDs=["*"],
        notdef_outline=True,
        ignore_missing_unicodes=True,
    )
    options.drop_tables += ["TSI0", "TSI1", "TSI2", "TSI3", "TSI5"]
    opened = TTFont(source, recalcTimestamp=False)
    subsetter = Subsetter(options)
    subsetter.populate(
        unicodes=opened.getBestCmap() if font.characters is None else font.characters
    )
    subsetter.subset(opened)
    if font.family is not None:
        for record in opened["name"].names:
            if record.nameID in {1, 3, 4, 6, 16}:
                record.string = font.family.replace(" ", "") if record.nameID == 6 else font.family
    opened.save(FONTS / font.name)


def printed_by(files: Iterable[Path]) -> set[int]:
    """Return what at least one of the fonts has a glyph of."""
    return {character for file in files for character in TTFont(file).getBestCmap()} - BIDI_CONTROLS


def spans(characters: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each unbroken run."""
    first = last = -2
    for character in sorted(characters):
        if character != last + 1:
            if first >= 0:
                yield first, last
            first = character
        last = character
    if first >= 0:
        yield first, last


def main(folder: Path) -> None:
    for font in WANTED:
        write(font, next(folder.rglob(font.source)))
    with (FONTS / "coverage.csv").open("w", encoding="ascii", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("first", "last"))
        rows.writerows(
            (f"{first:04X}", f"{last:04X}")
            for first, last in spans(printed_by(FONTS.glob("*.ttf")))
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
