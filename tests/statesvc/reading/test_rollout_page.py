"""The commands of docs/normalizer-versions.md in their order, with the planted
carrier in the place of UPS.
"""

import base64
import shlex
from pathlib import Path

import pytest

from events.carriers import CARRIERS
from tests.deploy.documented import blocks
from tests.statesvc.reading.planted import CARRIER, MISREAD
from tests.world.shell import Shell, use
from tests.world.shop import CARRIER_ID, Shop, says

PAGE = "docs/normalizer-versions.md"


@pytest.fixture
def commands(shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Return the words of each command, without `statesvc`; the body that they name is there."""
    use(shop.database, monkeypatch)
    monkeypatch.setenv("STATESVC_MASTER_KEY", base64.b64encode(bytes(range(32))).decode())
    monkeypatch.setitem(CARRIERS, CARRIER_ID, CARRIER)
    body = tmp_path / "alert.json"
    body.write_bytes(misread(0))
    values = {"ups": CARRIER_ID, "alert.json": str(body)}
    return [
        [values.get(word, word) for word in shlex.split(command)[1:]]
        for block in blocks(PAGE)
        for command in block.commands()
    ]


def misread(number: int) -> bytes:
    return says({"number": f"N{number}", "status": "in_transit", "code": MISREAD})


async def test_the_commands_of_the_page_do_what_it_says(
    shop: Shop, shell: Shell, commands: list[list[str]]
) -> None:
    by_one, by_two, shadow, show, some, everything, back, plan, repair, history = commands
    delivered = "SELECT count(*)::int FROM statesvc.shipment WHERE status = 'delivered'"

    assert ('"in_transit"' in await shell(*by_one), '"delivered"' in await shell(*by_two)) == (
        True,
        True,
    )

    await shell(*shadow)
    await shop.push(*map(misread, range(10)))
    await shop.work()
    assert await shop.value(delivered) == 0
    assert "10 messages: 0 failed, 10 read differently" in await shell(*show)

    await shell(*some)
    ((percent, is_shadow, judged),) = await shop.rows(
        "SELECT percent::int, shadow, guard_messages FROM statesvc.rollout"
    )
    assert (percent, is_shadow, judged) == (5, True, 1000)

    await shell(*everything)
    assert await shop.rows("SELECT percent::int, shadow FROM statesvc.rollout") == [(100, False)]
    await shop.push(*map(misread, range(10, 20)))
    await shop.work()
    assert await shop.value(delivered) == 10

    await shell(*back)
    await shop.push(*map(misread, range(20, 30)))
    await shop.work()
    assert await shop.value(delivered) == 10, "what it read stays, and it reads no more"
    assert "10" in await shell(*plan)
    assert await shop.value(delivered) == 10
    await shell(*repair)
    assert await shop.value(delivered) == 0

    assert await shell(*history)
