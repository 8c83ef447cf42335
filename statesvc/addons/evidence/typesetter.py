"""`python -m statesvc.addons.evidence.typesetter`: a document on standard input, its PDF on output.

A process for each document: the typesetting library keeps its memory, and damage by a foreign
picture ends with the process. A line before the PDF gives the number of pages and the page on which
the summary ends. Exits with 1 if a picture prevents printing.
"""

import resource
import sys
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson
import typst

_FOLDER: Final = Path(__file__).parent
_MEMORY_BYTES_MAX: Final = 4 * 1024**3


def typeset(document: bytes) -> bytes:
    """Return the line and the PDF. `document`: the JSON that `evidence.typ` reads.

    Raises typst.TypstError.
    """
    made_at = datetime.fromisoformat(orjson.loads(document)["made_at"])
    compiler = typst.Compiler(
        input=_FOLDER / "evidence.typ",
        root=_FOLDER,
        font_paths=typst.Fonts(
            include_system_fonts=False, include_embedded_fonts=True, font_paths=[_FOLDER / "fonts"]
        ),
        sys_inputs={"report": document.decode()},
    )
    pdf = compiler.compile(format="pdf", pdf_standards="a-2b", timestamp=made_at)
    pages, summary_page = (
        compiler.query(f"<{label}>", field="value", one=True) for label in ("end", "summary-end")
    )
    if not isinstance(pdf, bytes):
        raise TypeError("a PDF is one file")
    return f"{pages} {summary_page}\n".encode() + pdf


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    try:
        sys.stdout.buffer.write(typeset(sys.stdin.buffer.read()))
    except typst.TypstError:
        # its text may quote what a carrier wrote
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
