"""The committed versions of the schema: `1.json`, `2.json`, ... in `events/schema`.

A landed version never changes; a change is a new version. The newest equals the declaration; each
is its predecessor, grown.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from itertools import pairwise
from typing import Any, Final

from tests.schema_growth import breaks

FOLDER: Final = "events/schema"
COMMAND: Final = "python -m tests.schema_check --write"


def committed() -> dict[int, Any]:
    """Return the versions in their order."""
    found = {
        int(number): json.loads(path.read_text("utf-8"))
        for path in files("events.schema").iterdir()
        if (number := path.name.removesuffix(".json")).isdecimal()
    }
    return dict(sorted(found.items()))


def text_of(version: Mapping[str, Any]) -> str:
    """Format a version as it is committed."""
    return json.dumps(version, indent=1, ensure_ascii=False) + "\n"


def faults(versions: Mapping[int, Any], declared: Mapping[str, Any]) -> list[str]:
    """Return the faults of the versions and the declaration, a line each."""
    if not versions:
        return [f"no version of the schema is committed; `{COMMAND}` writes the first"]
    found = []
    for earlier, later in pairwise(versions):
        found += [
            f"{later}.json against {earlier}.json: {line}"
            for line in breaks(versions[earlier], versions[later])
        ]
    newest = max(versions)
    broken = [
        f"the declaration against {newest}.json: {line}"
        for line in breaks(versions[newest], declared)
    ]
    if not broken and versions[newest] != declared:
        broken = [f"the declaration says more than {newest}.json; `{COMMAND}` writes it down"]
    return found + broken
