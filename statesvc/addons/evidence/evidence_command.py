"""`statesvc evidence CARRIER TRACKING --out FILE`; the file's extension chooses the form."""

import argparse
import asyncio
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Final

from statesvc.addons.evidence.bundle import BUNDLE_FILE
from statesvc.cli.api_calls import CallRefusedError, Calls, File, Json
from statesvc.cli.command_error import CommandError
from statesvc.cli.operation_table import add_fields
from statesvc.cli.output import time_of, write_json, write_line
from statesvc.cli.service_calls import api_calls
from statesvc.http.document_forms import FORMS

_ODD: Final = re.compile(r"[^A-Za-z0-9._-]+")
_ARGUMENTS: Final = ("carrier_id", "tracking_number")
_OPTIONS: Final = ("discriminator", "as_of", "without_personal")


def configure(parser: argparse.ArgumentParser) -> None:
    add_fields(
        parser,
        "get_shipment_evidence",
        *_ARGUMENTS,
        *_OPTIONS,
        arguments=_ARGUMENTS,
        carrier_id="a carrier id",
        tracking_number="the tracking number, in any spelling",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=(
            "ends in .pdf, .html, .json (verifies by itself) or .zip (all, with a verifier);"
            " default: a .zip named after the parcel"
        ),
    )
    parser.add_argument(
        "--case",
        type=Path,
        metavar="FILE",
        help="JSON of what the merchant states; that it was asked for is recorded",
    )
    parser.add_argument(
        "--json", action="store_true", help="for scripts: the files, and what page 1 says"
    )


def run(options: argparse.Namespace) -> int:
    """Write the file, and its annex if that is separate."""
    if options.out is None:
        options.out = Path(
            _ODD.sub("-", f"evidence-{options.carrier_id}-{options.tracking_number}")[:100] + ".zip"
        )
    if options.out.suffix not in FORMS:
        raise CommandError(f"--out must end in {', '.join(FORMS)}", exit_code=2)
    if not os.access(options.out.parent, os.W_OK):
        # before it is made, which is recorded
        raise CommandError(f"{options.out.parent} is no folder that can be written to", exit_code=2)
    statement = None if options.case is None else _statement(options.case)
    return asyncio.run(_run(options, statement))


def _statement(path: Path) -> Json:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise CommandError(
            f"{path} cannot be read: {error.strerror or type(error).__name__}", exit_code=2
        ) from None
    except json.JSONDecodeError as error:
        # without the text, which is personal
        raise CommandError(
            f"{path}: the file is not JSON: line {error.lineno}, column {error.colno}", exit_code=2
        ) from None
    except ValueError:
        raise CommandError(f"{path}: the file is not JSON in UTF-8", exit_code=2) from None


async def _run(options: argparse.Namespace, statement: Json) -> int:
    async with api_calls(options) as calls:
        document = await _fetch(calls, options, statement, "document")
        files = {options.out: document}
        _write(options.out, document)
        if document.headers.get("Statesvc-Annex") == "true":
            annex = options.out.with_stem(f"{options.out.stem}-annex")
            files[annex] = await _fetch(calls, options, statement, "annex")
            _write(annex, files[annex])
    page_one = _page_one(options.out.suffix, document.content)
    if options.json:
        write_json(
            {
                "files": [_described(path, file) for path, file in files.items()],
                "page_one": page_one,
            }
        )
        return 0
    for path, file in files.items():
        described = _described(path, file)
        write_line(
            f"{path}: {described['entries']} entries of the log, sealed"
            f" {time_of(described['sealed_at'])}"
        )
    for line in page_one:
        write_line(line)
    return 0


async def _fetch(calls: Calls, options: argparse.Namespace, statement: Json, part: str) -> File:
    given = {name: getattr(options, name) for name in (*_ARGUMENTS, *_OPTIONS)}
    operation_id = "get_shipment_evidence" if statement is None else "make_shipment_evidence"
    try:
        return await calls.fetch(
            operation_id, statement, accept=FORMS[options.out.suffix], **given, part=part
        )
    except CallRefusedError as error:
        match error.problem.get("code"):
            case "not_found":
                raise CommandError(
                    f"{error}; `statesvc shipments find {options.tracking_number}` asks all"
                    " carriers"
                ) from None
            case "conflict" if options.discriminator is None:
                raise CommandError(f"{error}; give --discriminator") from None
        flaws = [
            f"{_member(flaw['pointer'])}: {flaw['detail']}"
            for flaw in error.problem.get("errors", ())
        ]
        if statement is None or not flaws:
            raise
        raise CommandError(f"{options.case}: {'; '.join(flaws)}", exit_code=2) from None


def _member(pointer: str) -> str:
    return pointer.removeprefix("/body/").replace("/", ".")


def _page_one(form: str, content: bytes) -> list[str]:
    """Return the first page's sentences, as far as the form holds them as text."""
    if form == ".zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            content = archive.read(BUNDLE_FILE)
    elif form != ".json":
        return []
    page = json.loads(content).get("page_one") or {}
    lines = (
        page.get("verdict"),
        *page.get("notices", ()),
        *(f"To be weighed: {remark}" for remark in page.get("remarks", ())),
    )
    return [line for line in lines if line]


def _write(path: Path, file: File) -> None:
    try:
        path.write_bytes(file.content)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from error


def _described(path: Path, file: File) -> dict[str, Json]:
    return {
        "file": str(path),
        "entries": int(file.headers["Statesvc-Entries"]),
        "sealed_at": file.headers["Statesvc-Sealed-At"],
    }
