"""Recorded examples of requests and answers.

`python -m tests.call_examples` writes them next to this module.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import orjson


def call_examples() -> Mapping[str, Mapping[str, Any]]:
    """Return the examples by operation.

    `request` by media type, `responses` by status and media type.
    """
    examples: dict[str, dict[str, Any]] = orjson.loads(
        (files("statesvc.api") / "call_examples.json").read_bytes()
    )
    return examples
