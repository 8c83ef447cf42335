"""Location of the corpus of real payloads, which is no part of the repository."""

import os
from pathlib import Path
from typing import Final

import pytest

CORPUS: Final = Path(
    os.environ.get("STATESVC_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus"
)
needs_corpus: Final = pytest.mark.skipif(
    not (CORPUS / "expected.json").is_file(),
    reason="the corpus is absent: set STATESVC_CORPUS to its folder",
)
