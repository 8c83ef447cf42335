"""Writes docs/errors.md from the table of problems: `python -m tests.errors_page`.

A test compares the two.
"""

from pathlib import Path
from typing import Final

from statesvc.http.problem import PROBLEM_KINDS

PAGE: Final = Path(__file__).parents[1] / "docs" / "errors.md"
_HEAD: Final = """# Errors
<!-- written by python -m tests.errors_page: change statesvc/http/problem.py instead -->

How do you handle an error? Branch on `code`; treat an unknown code by its status, because releases add codes. Every error is
`application/problem+json` (RFC 9457) with `status`, `code`, a fixed `title` and a specific `detail`. `errors` locates each flaw
(`/query/limit`, `/body/url`). 429 and 503 have `Retry-After` in seconds. The token call of carriers answers `application/json` with
`error`, as in RFC 6749.

| code | status | meaning | action |
|---|---:|---|---|
"""


def page() -> str:
    rows = [
        f"| `{code.value}` | {int(kind.status)} | {kind.title} | {kind.remedy} |"
        for code, kind in PROBLEM_KINDS.items()
    ]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
