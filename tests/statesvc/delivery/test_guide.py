"""The verifiers of docs/subscribers.md and examples/receivers accept our signatures only, in
each installed language.
"""

import base64
import contextlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from statesvc.delivery.signing import signed_headers
from tests.world.programs import required

ROOT: Final = Path(__file__).parents[3]
GUIDE: Final = (ROOT / "docs" / "subscribers.md").read_text("utf-8")
RECEIVERS: Final = ROOT / "examples" / "receivers"
KEY, OTHER = bytes(range(32)), bytes(32)
SECRET: Final = "whsec_" + base64.b64encode(KEY).decode()
BODY: Final = '{"type":"subscription.test","data":{"city":"Łódź"}}'.encode()
NODE: Final = """
import { readFileSync } from 'node:fs'
const said = JSON.parse(readFileSync(0)).map(({ secret, headers, body }) => {
  try { return verified(secret, headers, Buffer.from(body, 'base64')) } catch { return null }
})
console.log(JSON.stringify(said))
"""
PHP: Final = """
set_error_handler(fn () => throw new Exception('a warning'));
$said = array_map(function ($case) {
    try { return verified($case['secret'], $case['headers'], base64_decode($case['body'])); } catch (Throwable) { return null; }
}, json_decode(stream_get_contents(STDIN), true));
echo json_encode($said);
"""
GO: Final = """package main

import (
	"encoding/json"
	"net/http"
	"os"
)

func main() {
	var cases []struct {
		Secret  string
		Headers map[string]string
		Body    []byte
	}
	json.NewDecoder(os.Stdin).Decode(&cases)
	said := make([]json.RawMessage, len(cases))
	for place, one := range cases {
		header := http.Header{}
		for name, value := range one.Headers {
			header.Set(name, value)
		}
		if verified(one.Secret, header, one.Body) == nil {
			said[place] = one.Body
		} else {
			said[place] = json.RawMessage("null")
		}
	}
	json.NewEncoder(os.Stdout).Encode(said)
}
"""

Cases = list[dict[str, Any]]


def run_program(command: list[str], cases: Cases) -> list[Any]:
    done = subprocess.run(
        command, input=json.dumps(cases).encode(), capture_output=True, timeout=120, check=True
    )
    said: list[Any] = json.loads(done.stdout)
    return said


def by_python(cases: Cases, _folder: Path) -> list[Any]:
    scope: dict[str, Any] = {}
    (shown,) = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    exec(shown, scope)  # noqa: S102 - of our own page
    said: list[Any] = []
    for case in cases:
        said.append(None)
        with contextlib.suppress(ValueError, KeyError):
            said[-1] = scope["verified"](
                case["secret"], case["headers"], base64.b64decode(case["body"])
            )
    return said


def by_node(cases: Cases, folder: Path) -> list[Any]:
    program = folder / "receiver.mjs"
    program.write_text(RECEIVERS.joinpath("verified.mjs").read_text("utf-8") + NODE, "utf-8")
    return run_program([required("node", "nodejs"), str(program)], cases)


def by_php(cases: Cases, folder: Path) -> list[Any]:
    program = folder / "receiver.php"
    program.write_text(RECEIVERS.joinpath("verified.php").read_text("utf-8") + PHP, "utf-8")
    return run_program([required("php", "php-cli"), str(program)], cases)


def by_go(cases: Cases, folder: Path) -> list[Any]:
    if shutil.which("go") is None:
        pytest.skip("go is not installed (Debian package golang-go, 300 MB)")
    program = folder / "receiver.go"
    program.write_text(GO, "utf-8")
    return run_program(["go", "run", str(program), str(RECEIVERS / "verified.go")], cases)


def case(headers: dict[str, str], body: bytes = BODY, secret: str = SECRET) -> dict[str, Any]:
    return {"secret": secret, "headers": headers, "body": base64.b64encode(body).decode()}


def signed(*keys: bytes, age: int = 0) -> dict[str, str]:
    return signed_headers(keys, webhook_id="n1-1", timestamp=int(time.time()) - age, body=BODY)


@pytest.mark.parametrize("verify", [by_python, by_node, by_php, by_go])
def test_a_verifier_takes_what_we_sign_and_nothing_else(
    verify: Callable[[Cases, Path], list[Any]], tmp_path: Path
) -> None:
    good = signed(KEY)
    accepted = [
        case(good),
        case(signed(OTHER, KEY)),
        case(signed(KEY, OTHER)),
        case(signed(KEY, age=240)),
        case(signed(KEY, age=-240)),
    ]
    refused = [
        case(good, BODY + b" "),
        case(good, b""),
        case(signed(OTHER)),
        case(signed(KEY, age=3600)),
        case(signed(KEY, age=-3600)),
        case(good | {"webhook-id": "n1-2"}),
        case(good | {"webhook-timestamp": str(int(good["webhook-timestamp"]) + 1)}),
        case(good | {"webhook-timestamp": "soon"}),
        case(good | {"webhook-signature": ""}),
        case(good | {"webhook-signature": "v1,"}),
        case(good | {"webhook-signature": good["webhook-signature"].replace("v1,", "v2,")}),
        case({name: value for name, value in good.items() if name != "webhook-signature"}),
        case({name: value for name, value in good.items() if name != "webhook-timestamp"}),
    ]
    said = verify(accepted + refused, tmp_path)
    assert said == [json.loads(BODY)] * len(accepted) + [None] * len(refused)
