from events.carriers.easypost import CARRIER
from events.event import Rejection
from events.parsing.rejections import LISTED_MAX, Rejections
from tests.events.carriers.carrier_fixtures import read


def test_no_rejections_are_none() -> None:
    assert not Rejections()
    assert tuple(Rejections()) == ()


def test_the_first_are_told_and_the_rest_counted() -> None:
    rejections = Rejections()
    for index in range(LISTED_MAX):
        rejections.add(f"/{index}", "not an object")
    assert tuple(rejections) == tuple(
        Rejection(pointer=f"/{index}", why="not an object") for index in range(LISTED_MAX)
    )
    rejections.add("/last", "not an object")
    assert tuple(rejections)[LISTED_MAX:] == (
        Rejection(pointer="", why="1 more members are no events"),
    )


def test_a_message_of_bad_members_says_little() -> None:
    members = ",".join("1" * 100_000)
    body = (
        '{"object": "Tracker", "tracking_code": "A1", "status": "unknown", "tracking_details":'
        f" [{members}]}}".encode()
    )
    said = read(CARRIER, body)
    assert (len(said.rejections), said.rejections[-1].why) == (
        LISTED_MAX + 1,
        f"{100_000 - LISTED_MAX} more members are no events",
    )
