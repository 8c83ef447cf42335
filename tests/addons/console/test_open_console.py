"""The console's address."""

import pytest

from statesvc.cli import main
from tests.world.api import Api
from tests.world.shell import Shell


def test_where_nothing_answers_it_says_so_and_opens_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--url", "http://127.0.0.1:9", "open"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "http://127.0.0.1:9/console\n"
    assert "nothing answers there" in printed.err


async def test_the_address_of_a_service_that_answers_is_printed(api: Api, shell: Shell) -> None:
    address = str(api.client.make_url("/"))
    assert await shell("--url", address, "open", "--print") == f"{address}console\n"
