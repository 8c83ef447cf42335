import ast
from collections.abc import Iterator
from pathlib import Path

from statesvc.telemetry.redaction import KEYS

ROOT = Path(__file__).parents[3]
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def logged_keys() -> Iterator[tuple[str, str]]:
    for package in ("statesvc", "events", "projections"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.Call(
                        func=ast.Attribute(
                            value=ast.Name(id="log" | "_log" | "logger"), attr=attribute
                        ),
                        keywords=keywords,
                    ) if attribute in LEVELS:
                        for keyword in keywords:
                            yield f"{path.relative_to(ROOT)}:{node.lineno}", keyword.arg or "**"
                    case _:
                        pass


def test_every_key_that_the_code_logs_is_on_the_list() -> None:
    unknown = [
        (place, key) for place, key in logged_keys() if key not in KEYS and key != "exc_info"
    ]
    assert unknown == []
