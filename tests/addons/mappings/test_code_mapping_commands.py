"""`statesvc carriers unmapped | map | unmap`, end to end: previewed, taught, read again, taken
back.
"""

from tests.addons.mappings.test_code_mappings import australiapost, easypost, royalmail
from tests.world.shell import Shell
from tests.world.worker_harness import WorkerHarness

CODE = ("--code", "EVZZ9")


async def test_what_the_list_of_unknown_codes_prints_is_taken_and_it_prints_the_command(
    royal: WorkerHarness, shell: Shell
) -> None:
    await royal.push(easypost("EZ1", "in_transit", "seen"), carrier_id="easypost")
    await royal.push(royalmail("AB1GB", "EVZZ9"), carrier_id="royalmail")
    await royal.push(australiapost("33AB1", "Handed to the robot"), carrier_id="australiapost")
    await royal.work()
    printed = await shell("carriers", "unmapped")
    assert "in_transit/seen" in printed
    assert (
        "  statesvc carriers map easypost --type in_transit --code seen --status STATUS\n"
        in printed
    )
    assert "  statesvc carriers map royalmail --code EVZZ9 --status STATUS\n" in printed
    assert "  statesvc carriers map australiapost --text TEXT --status STATUS\n" in printed
    said = ("--text", "handed  to the ROBOT", "--status", "delivered")
    assert "1 event of 1 shipment" in await shell("carriers", "map", "australiapost", *said)
    lesson = ("carriers", "map", "easypost", "--code", "in_transit/seen", "--status", "delivered")
    assert "1 event of 1 shipment" in await shell(*lesson)
    assert "--why is missing" in await shell(*lesson, "--yes", exit_code=2)
    assert await royal.value("SELECT count(*) FROM statesvc.code_mapping") == 0
    await shell(*lesson, "--why", "their list", "--yes")
    assert "delivered" in await shell("carriers", "mappings")
    await shell("carriers", "renormalize", "easypost", "1", "--why", "their list")
    assert await royal.rows("SELECT raw_type, raw_code FROM statesvc.code_mapping") == [
        ("in_transit", "seen")
    ]
    assert (
        await royal.value("SELECT status FROM statesvc.shipment WHERE carrier_id = 'easypost'")
        == "delivered"
    )
    await shell(
        "carriers", "unmap", "easypost", "--code", "in_transit/seen", "--why", "wrong", "--yes"
    )


async def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    royal: WorkerHarness, shell: Shell
) -> None:
    for arguments, why in (
        (("royalmail", "--status", "lost"), "name the code"),
        (("royalmail", *CODE), "meaning"),
        (("royalmail", *CODE, "--info", "--reason", "held"), "a reason belongs to a scan"),
        (("royalmail", "--code", "text", "--info"), "stands for any text"),
        (("royalmail", *CODE, "--info", "--renormalize"), "carriers renormalize"),
        (("nobody", *CODE, "--info"), "no such carrier"),
    ):
        assert why in await shell("carriers", "map", *arguments, exit_code=2)
    assert await royal.value("SELECT count(*) FROM statesvc.code_mapping") == 0
