"""Generate what is not written by hand: `core` from the OpenAPI document, its `arguments` with it,
`sync` from `aio`.

A build hook of hatchling, so that `pip install` of a clone does it; `python generate.py` does it in
place.
"""

import json
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
PACKAGE = HERE / "src" / "statesvc_client"
# TypedDicts of keyword arguments, each of a call: of its query, or its body.
ARGUMENTS = {
    "ShipmentFilters": "list_shipments",
    "SubscriptionFilters": "list_subscriptions",
    "AttemptFilters": "list_attempts",
    "NotificationFilters": "list_notifications",
    "SubscriptionFields": "create_subscription",
    "SubscriptionChanges": "change_subscription",
}
POSITIONAL = {"create_subscription": "url"}
PAGING = {"limit", "cursor"}
HEADER = '''"""Keyword arguments of calls, as the document of the API has them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, Required, TypedDict
from uuid import UUID

from statesvc_client.core import models


'''
SYNC_NAMES = {
    "AsyncClient": "Client",
    "AsyncHTTPTransport": "HTTPTransport",
    "AsyncRetries": "Retries",
    "aclose": "close",
    "aio": "sync",
    "AsyncBaseTransport": "BaseTransport",
    "aconnect_sse": "connect_sse",
    "aiter_sse": "iter_sse",
    "aread": "read",
    "handle_async_request": "handle_request",
    "asyncio_detailed": "sync_detailed",
    "get_async_httpx_client": "get_httpx_client",
    "set_async_httpx_client": "set_httpx_client",
    "sleep_async": "sleep",
}


class GeneratedCode(BuildHookInterface):
    """Run before the files of a wheel or a source distribution are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Generate into the sources, from where the build collects them."""
        generate()


def generate() -> None:
    """Generate both parts."""
    # next to this file in a source distribution, one level up in the repository
    document = next(
        path for path in (HERE / "openapi.json", HERE.parent / "openapi.json") if path.exists()
    )
    generate_core(PACKAGE / "core", document)
    described = json.loads(document.read_text("utf-8"))
    (PACKAGE / "core" / "arguments.py").write_text(Arguments(described).module())
    generate_sync(PACKAGE / "aio", PACKAGE / "sync")


def generate_core(target: Path, document: Path) -> None:
    """Write the models and a module for each call."""
    from openapi_python_client import generate as generate_client
    from openapi_python_client.config import Config, ConfigFile, MetaType

    config = Config.from_sources(
        ConfigFile.load_from_path(HERE / "generator.yaml"),
        meta_type=MetaType.NONE,
        document_source=document,
        file_encoding="utf-8",
        overwrite=True,
        output_path=target,
    )
    shutil.rmtree(target, ignore_errors=True)
    if errors := generate_client(config=config):
        raise RuntimeError(f"{document} is not what openapi-python-client takes: {errors}")
    make_lazy(target / "models" / "__init__.py")
    for module in target.glob("models/*.py"):
        text = re.sub(
            r"^from dateutil.parser import isoparse$", "", module.read_text(), flags=re.MULTILINE
        )
        module.write_text(re.sub(r"\bisoparse\(", "datetime.datetime.fromisoformat(", text))
    for module in target.glob("api/*/*.py"):
        text = module.read_text()
        # an operation that takes several kinds of bodies, and no optional parameter, lacks an
        # import
        module.write_text(
            re.sub(
                r"^(from \.\.\.types import Response, UNSET)$",
                r"\1, Unset",
                text,
                flags=re.MULTILINE,
            )
        )


def make_lazy(package: Path) -> None:
    """Import a model when it is asked for: all of them take longer than httpx."""
    modules = dict(
        re.findall(r"^from \.(\w+) import (\w+)$", package.read_text(), flags=re.MULTILINE)
    )
    package.write_text(
        '"""The models, each in a module of its own."""\n\nfrom importlib import import_module\nfrom typing import TYPE_CHECKING, Any\n\n'
        "if TYPE_CHECKING:\n"
        + "".join(
            f"    from .{module} import {name} as {name}\n" for module, name in modules.items()
        )
        + "\n_MODULES = {\n"
        + "".join(f'    "{name}": "{module}",\n' for module, name in modules.items())
        + "}\n\n\ndef __getattr__(name: str) -> Any:\n    if name not in _MODULES:\n"
        + '        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")\n'
        + '    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)\n'
    )


class Arguments:
    """The types of keyword arguments, from the schemas of the document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._schemas: dict[str, Any] = document["components"]["schemas"]
        self._calls = {
            call["operationId"]: call
            for path in document["paths"].values()
            for call in path.values()
            if isinstance(call, dict)
        }
        self._parts: dict[str, str] = {}

    def module(self) -> str:
        """Write all of `ARGUMENTS`, and what they refer to, as a module."""
        for name, operation in ARGUMENTS.items():
            call = self._calls[operation]
            body = call.get("requestBody", {}).get("content", {}).get("application/json")
            members = (
                self._properties(body["schema"])
                if body
                else {
                    parameter["name"]: parameter["schema"]
                    for parameter in call["parameters"]
                    if parameter["in"] == "query"
                }
            )
            left_out = PAGING | {POSITIONAL.get(operation, "")}
            chosen = {each: schema for each, schema in members.items() if each not in left_out}
            self._parts[name] = self._typed_dict(name, chosen, required=())
        return HEADER + "\n\n".join(self._parts.values())

    def _properties(self, schema: dict[str, Any]) -> dict[str, Any]:
        resolved = self._schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        properties: dict[str, Any] = resolved["properties"]
        return properties

    def _typed_dict(self, name: str, members: dict[str, Any], required: Collection[str]) -> str:
        lines = (
            f"    {each}: Required[{self._type(schema)}]"
            if each in required
            else f"    {each}: {self._type(schema)}"
            for each, schema in members.items()
        )
        return f"class {name}(TypedDict, total=False):\n" + "\n".join(lines) + "\n"

    def _type(self, schema: dict[str, Any]) -> str:  # noqa: PLR0911 - one for each kind of schema
        """Return the annotation of a value."""
        match schema:
            case {"$ref": reference}:
                return self._named(reference.rpartition("/")[2])
            case {"anyOf": choices}:
                return " | ".join(self._type(choice) for choice in choices)
            case {"enum": words} | {"const": words}:
                return f"Literal[{repr(words).strip('[]')}]"
            case {"items": items}:
                return f"Sequence[{self._type(items)}]"
            case {"additionalProperties": dict() as values}:
                return f"Mapping[str, {self._type(values)}]"
            case {"patternProperties": patterns}:
                return f"Mapping[str, {self._type(next(iter(patterns.values())))}]"
        formats = {"date-time": "datetime", "uuid": "UUID"}
        types = {"null": "None", "integer": "int", "number": "float", "boolean": "bool"}
        return formats.get(schema.get("format", ""), types.get(schema["type"], "str"))

    def _named(self, name: str) -> str:
        """Return the name of a schema's type, which is written before those that refer to it."""
        schema = self._schemas[name]
        if name in self._parts:
            return name
        if "enum" in schema:
            self._parts[name] = f"{name} = models.{name} | {self._type(schema)}\n"
        else:
            self._parts[name] = self._typed_dict(
                name, schema["properties"], schema.get("required", ())
            )
        return name


def generate_sync(source: Path, target: Path) -> None:
    """Turn coroutines into functions, name by name, as httpcore and elasticsearch-py do."""
    import unasync

    shutil.rmtree(target, ignore_errors=True)
    rule = unasync.Rule(f"/{source.name}/", f"/{target.name}/", additional_replacements=SYNC_NAMES)
    unasync.unasync_files([str(module) for module in source.glob("*.py")], rules=[rule])


if __name__ == "__main__":
    generate()
