"""Named queries: a `.sql` file beside its module holds `-- name: some_query` blocks.

A query's first comment line states its purpose; parameters are psycopg's `%(name)s` (text) or
`%(name)b` (binary, for arrays).
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


class Queries(Mapping[str, LiteralString]):
    def __init__(self, text: str, origin: str) -> None:
        parts = _NAME.split(text)
        names = parts[1::2]
        duplicated = {name for name in names if names.count(name) > 1}
        if duplicated:
            raise ValueError(f"{origin}: query names stand twice: {', '.join(sorted(duplicated))}")
        self._queries = {
            name: cast("LiteralString", body.strip().rstrip(";"))
            for name, body in zip(names, parts[2::2], strict=True)
        }

    def __getitem__(self, name: str) -> LiteralString:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


@cache
def queries(package: str, name: str) -> Queries:
    """Load the queries of `name`.sql in `package` (a module's `__package__`)."""
    resource = files(package) / f"{name}.sql"
    return Queries(resource.read_text("utf-8"), f"{package}/{name}.sql")
