"""Every command of the pages is run as it stands, or says why not; what is not run names what there
is.
"""

import asyncio
import io
import json
import re
import shlex
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from statesvc.cli import main
from statesvc.cli.removed_commands import refusal
from tests.acceptance.processes import Service, until_false
from tests.acceptance.service_maker import ServiceMaker
from tests.deploy.documented import PAGES, ROOT, Block, blocks, commands_not_run, unmarked

RUN_ELSEWHERE: Final = {
    "docs/newcomer.md": "tests/journeys/newcomer.py",
    "docs/normalizer-versions.md": "tests/statesvc/reading/test_rollout_calls.py",
    "docs/restore.md": "tests/acceptance/test_restore.py",
}
"""Pages whose commands belong to a story of their own.

The runbook's are checked in test_runbook.py.
"""
NO_COMMAND: Final = {"statesvc key id"}
"""The label of a digest."""
UPS_BODY: Final = ROOT / "tests/events/carriers/fixtures/ups/track_alert_delivered_signed.json"
KEY: Final = "a-long-and-random-first-key"
SETTINGS: Final = {
    "STATESVC_BOOTSTRAP_KEY": KEY,
    "STATESVC_WEBHOOK_SECRET_UPS": "my-ups-credential",
}
FINDINGS: Final = {"backup", "doctor", "status"}
"""Commands that end with 1 where they find something: a server of tests gives cause."""
CURL: Final = 'curl() { command curl --silent --show-error --fail-with-body "$@"; }; '


def _royalmail(number: int) -> bytes:
    event = {
        "eventCode": "EVZZ9",
        "eventName": "Handed over",
        "eventDateTime": "2026-03-02T10:04:00+00:00",
        "locationName": "Leeds DO",
    }
    return json.dumps(
        {"mailPieces": {"mailPieceId": f"AB{number:09}GB", "events": [event]}}
    ).encode()


def is_run_here(block: Block) -> bool:
    return (
        not block.reason
        and block.page not in RUN_ELSEWHERE
        and not block.page.startswith("docs/runbook/")
    )


class Reader:
    """Someone who tries what the pages say, in a folder, on a service that runs."""

    def __init__(self, service: Service, folder: Path, subscription: str) -> None:
        self._service = service
        self._folder = folder
        self._environment = {
            **service.environment,
            "KEY": KEY,
            "API": service.api.url,
            "ID": subscription,
        }

    async def try_out(self, block: Block) -> list[str]:
        """Run a block, and return what went wrong."""
        return [
            f"{block.page}: {command}\n{why}"
            for command in block.commands()
            if (why := await self._run(command))
        ]

    async def _run(self, command: str) -> str:
        words = shlex.split(command, comments=True)
        match words[0]:
            case "make":
                return await self._shell(
                    f"make --dry-run --directory {ROOT} {shlex.join(words[1:])}"
                )
            case "statesvc":
                return await self._ours(command)
            case _:
                return await self._shell(CURL + self._here(command))

    async def _ours(self, command: str) -> str:
        """Rewrite a command to be forked from a process that has loaded the service; what comes
        after a pipe or `>` is the shell's.
        """
        ours, _, rest = re.sub(r" (?=[|>] )", "\0", command, count=1).partition("\0")
        words = shlex.split(ours, comments=True)[1:]
        exit_code, output, errors = await self._service.run(
            *map(_as_of_now, words), folder=self._folder
        )
        if exit_code not in ({0, 1} if words[0] in FINDINGS else {0}):
            return f"{exit_code}: {errors}{output}"
        return await self._shell(f"cat {rest}", output) if rest else ""

    def _here(self, command: str) -> str:
        role = "ingress" if "/v1/webhooks/" in command else "api"
        url = next(each.url for each in self._service.roles if each.role == role)
        return command.replace("localhost:8080", url.removeprefix("http://")).replace(
            "@tests/", f"@{ROOT}/tests/"
        )

    async def _shell(self, command: str, given: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", command),
            cwd=self._folder,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate(given.encode())
        return f"{process.returncode}: {output.decode()}" if process.returncode else ""


def _as_of_now(word: str) -> str:
    """Replace the pages' instant by now: nothing was known before the test."""
    return re.sub(r"2026-\d\d-\d\dT\d\d:\d\d:\d\dZ", datetime.now(UTC).isoformat(), word)


async def test_each_command_does_what_its_page_shows(
    service_maker: ServiceMaker, tmp_path: Path
) -> None:
    async with await service_maker(tmp_path / "service", SETTINGS) as service:
        service.session.headers["Authorization"] = f"Bearer {KEY}"
        await service.start("ingress", "api", "worker", "sealer")
        reader = await _reader(service, tmp_path)
        wrong = [
            why
            for page in PAGES
            for block in blocks(page)
            if is_run_here(block)
            for why in await reader.try_out(block)
        ]
    assert wrong == [], "\n\n".join(wrong)


async def _reader(service: Service, folder: Path) -> Reader:
    """Prepare a reader: five messages with a code that nobody knows, and one that is delivered;
    with a subscription and a case.
    """
    ingress = next(role for role in service.roles if role.role == "ingress")
    for carrier_id, body in (
        ("ups", UPS_BODY.read_bytes()),
        *(("royalmail", _royalmail(number)) for number in range(5)),
    ):
        async with service.session.post(
            f"{ingress.url}/v1/webhooks/{carrier_id}",
            data=body,
            headers={"credential": "my-ups-credential"},
        ) as answer:
            assert answer.status == 200, await answer.text()
    status, subscription = await service.post(
        "/v1/subscriptions",
        '{"url": "http://127.0.0.1:9/"}',
        **{"Content-Type": "application/json"},
    )
    assert status == 201, subscription
    await service.drained()
    async with asyncio.timeout(30):
        await until_false(lambda: service.value("SELECT EXISTS (SELECT FROM statesvc.unsealed)"))
    (case,) = re.findall(
        r"```json\n(.*?)```", (ROOT / "docs/disputes.md").read_text("utf-8"), re.DOTALL
    )
    folder.joinpath("case.json").write_text(case)
    return Reader(service, folder, subscription["id"])


def test_a_block_of_commands_is_called_one() -> None:
    assert [(page, line) for page in PAGES for line in unmarked(page)] == []


def test_pages_whose_commands_run_elsewhere_are_named_there() -> None:
    assert [page for page, place in RUN_ELSEWHERE.items() if not (ROOT / place).exists()] == []


def _help_of(words: list[str], said: dict[tuple[str, ...], str]) -> str:
    """Return what `--help` prints after these words."""
    key = tuple(words)
    if key not in said:
        with redirect_stdout(io.StringIO()) as printed, pytest.raises(SystemExit) as stopped:
            main([*words, "--help"])
        said[key] = printed.getvalue() if stopped.value.code == 0 else ""
    return said[key]


def test_a_command_that_is_not_run_names_subcommands_and_options_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said: dict[tuple[str, ...], str] = {}
    wrong = []
    for page in PAGES:
        for command in commands_not_run(page):
            words = [word for word in command.replace("...", "").split()[1:] if word]
            path = [word for word in words if re.fullmatch(r"[a-z][a-z-]*", word)]
            options = [word.partition("=")[0] for word in words if word.startswith("--")]
            if refusal(path, options) is not None:
                if Path(page).name != "promises.md":
                    wrong.append(f"{page}: {command}")
                continue
            # positional values look like subcommands; an option may stand before its subcommand
            printed = "".join(_help_of(path[:end], said) for end in range(1, len(path) + 1))
            anywhere = _help_of([], said)
            if command not in NO_COMMAND and (
                not printed or any(option not in printed + anywhere for option in options)
            ):
                wrong.append(f"{page}: {command}")
    capsys.readouterr()
    assert wrong == []
