"""Generate what is not written by hand: `core` from the OpenAPI document, `sync` from `aio`.

A build hook of hatchling, so that `pip install` of a clone does it; `python generate.py` does it in place.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
PACKAGE = HERE / "src" / "statesvc_client"
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
    generate_core(PACKAGE / "core")
    generate_sync(PACKAGE / "aio", PACKAGE / "sync")


def generate_core(target: Path) -> None:
    """Write the models and a module for each call."""
    from openapi_python_client import generate as generate_client
    from openapi_python_client.config import Config, ConfigFile, MetaType

    # next to this file in a source distribution, one level up in the repository
    document = next(
        path for path in (HERE / "openapi.json", HERE.parent / "openapi.json") if path.exists()
    )
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
    for module in target.glob("api/*/*.py"):
        text = module.read_text()
        # an operation that takes several kinds of bodies, and no optional parameter, lacks an import
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


def generate_sync(source: Path, target: Path) -> None:
    """Turn coroutines into functions, name by name, as httpcore and elasticsearch-py do."""
    import unasync

    shutil.rmtree(target, ignore_errors=True)
    rule = unasync.Rule(f"/{source.name}/", f"/{target.name}/", additional_replacements=SYNC_NAMES)
    unasync.unasync_files([str(module) for module in source.glob("*.py")], rules=[rule])


if __name__ == "__main__":
    generate()
