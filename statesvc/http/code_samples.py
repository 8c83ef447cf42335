"""Samples of a call in curl, Python and Node, made of its contract.

`API` and `KEY` are variables.
"""

import json
import pprint
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

_PARAMETER: Final = re.compile(r"\{(\w+)\}")
# Of parameters in a path; others stand there by their name, in capitals.
_EXAMPLES: Final = {"carrier_id": "ups", "tracking_number": "1ZTEST000300000011"}
_JSON: Final = "application/json"
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class _Request:
    """`body`: JSON, or the text of another media type, which is then among the headers."""

    method: str
    path: str
    headers: Mapping[str, str]
    takes_key: bool
    body: Any

    @property
    def is_json(self) -> bool:
        return self.headers.get("Content-Type") == _JSON


def code_samples(method: str, path: str, call: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return them as Redoc shows them (`x-codeSamples`).

    An endless stream has a sample for curl alone.
    """
    request = _request(method, path, call)
    is_stream = any(
        "text/event-stream" in response.get("content", {})
        for response in call["responses"].values()
    )
    samples = [{"lang": "Shell", "label": "curl", "source": _curl(request, is_stream=is_stream)}]
    if not is_stream:
        samples.append({"lang": "Python", "label": "Python", "source": _python(request)})
        samples.append({"lang": "JavaScript", "label": "Node", "source": _node(request)})
    return samples


def _request(method: str, path: str, call: Mapping[str, Any]) -> _Request:
    required = [
        each for each in call.get("parameters", ()) if each["in"] == "query" and each["required"]
    ]
    filled = _PARAMETER.sub(lambda found: _EXAMPLES.get(found[1], found[1].upper()), path)
    query = "&".join(
        f"{each['name']}={_EXAMPLES.get(each['name'], each['name'].upper())}" for each in required
    )
    bodies = {
        kind: each["example"]
        for kind, each in call.get("requestBody", {}).get("content", {}).items()
        if "example" in each
    }
    if _FORM in bodies:
        bodies[_FORM] = urlencode(bodies[_FORM])
    kind = _JSON if _JSON in bodies else next(iter(bodies), None)
    return _Request(
        method=method,
        path=f"{filled}?{query}" if query else filled,
        headers={} if kind is None else {"Content-Type": kind},
        takes_key=any("key" in scheme for scheme in call["security"]),
        body=None if kind is None else bodies[kind],
    )


def _curl(request: _Request, *, is_stream: bool) -> str:
    method = "" if request.method == "GET" else f" -X {request.method}"
    lines = [f'curl{" -N" if is_stream else ""}{method} "$API{request.path}"']
    if request.takes_key:
        lines.append('-H "Authorization: Bearer $KEY"')
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in request.headers.items()]
    if request.body is not None:
        text = json.dumps(request.body, ensure_ascii=False) if request.is_json else request.body
        lines.append(f"--data-binary {shlex.quote(text)}")
    return " \\\n  ".join(lines)


def _python(request: _Request) -> str:
    headers = [
        f'"{name}": "{value}"' for name, value in request.headers.items() if not request.is_json
    ]
    if request.takes_key:
        headers.insert(0, '"Authorization": f"Bearer {os.environ[\'KEY\']}"')
    arguments = [f'"{request.method}"', f"f\"{{os.environ['API']}}{request.path}\""]
    if headers:
        arguments.append(f"headers={{{', '.join(headers)}}}")
    if request.body is not None:
        written = pprint.pformat(request.body, width=100, sort_dicts=False).replace("\n", "\n    ")
        arguments.append(f"json={written}" if request.is_json else f"content={request.body!r}")
    given = "".join(f"\n    {argument}," for argument in arguments)
    return (
        "import os\n\nimport httpx\n\nanswer ="
        f" httpx.request({given}\n)\nprint(answer.raise_for_status().text)"
    )


def _node(request: _Request) -> str:
    headers = [f'"{name}": "{value}"' for name, value in request.headers.items()]
    if request.takes_key:
        headers.insert(0, "Authorization: `Bearer ${process.env.KEY}`")
    options = [f'method: "{request.method}"']
    if headers:
        options.append(f"headers: {{ {', '.join(headers)} }}")
    if request.body is not None:
        text = json.dumps(
            request.body, ensure_ascii=False, indent=2 if request.is_json else None
        ).replace("\n", "\n  ")
        options.append(f"body: JSON.stringify({text})" if request.is_json else f"body: {text}")
    given = "".join(f"\n  {option}," for option in options)
    call = f"const answer = await fetch(`${{process.env.API}}{request.path}`, {{{given}\n}});"
    return f"{call}\nconsole.log(answer.status, await answer.text());"
