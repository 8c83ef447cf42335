"""Writes docs/errors.md from the table of problems: `python -m tests.errors_page`. A test compares the two."""

from pathlib import Path
from typing import Final

from statesvc.http.problem import PROBLEM_KINDS

PAGE: Final = Path(__file__).parents[1] / "docs" / "errors.md"
_HEAD: Final = """# Errors
<!-- written by python -m tests.errors_page: change statesvc/http/problem.py instead -->

Every error is `application/problem+json` (RFC 9457): `status`, `title` (the same each time), `detail` (this time) and `code`, which
programs read. Codes are only ever added: treat one that you do not know by its status. `errors` names each flaw of a request, and where
(`/query/limit`, `/body/url`). A 429 or 503 says in `Retry-After` how many seconds to wait. The call that gives a carrier its token adds
`error`, as RFC 6749 has it, and says `application/json`.

| code | status | meaning | what to do |
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
