"""Lists of codes, their meanings, and what is rejected."""

import pytest
from lxml import etree

from events.carriers.easypost import CARRIER
from events.event import Rejection
from events.parsing.lists import JsonObject, elements_at, object_at, objects_at, recognised
from events.parsing.meanings import UNMAPPED, Meaning, finest
from events.parsing.rejections import LISTED_MAX, Rejections
from events.vocabulary import Kind, Status
from tests.events.carriers.carrier_fixtures import read

EMPTY: list[object] = [None, "", [], {}, {"event": []}]
EVENT: JsonObject = {"at": "2026-03-01T10:00:00Z", "code": "A"}


@pytest.mark.parametrize(
    ("parent", "name", "found", "rejected"),
    [
        # each of its shapes and spellings
        *(
            (parent, "trackingEvents", [(0, EVENT)], [])
            for parent in [
                {"trackingEvents": [EVENT]},
                {"trackingEvents": EVENT},
                {"tracking_events": [EVENT]},
                {"TrackingEvents": [EVENT]},
                {"tracking-events": {"event": [EVENT]}},
            ]
        ),
        # an empty list under its name
        *(({"events": empty, "other": [EVENT]}, "events", [], []) for empty in EMPTY),
        # an object that may say that there is nothing
        *(
            (parent, "events", [], [])
            for parent in [
                {"code": "NOT_FOUND", "parcel": {"number": "1"}},
                {"number": {"value": "1"}, "error": {"code": 404}},
                {"success": False, "parcel": {"number": "1"}},
                {
                    "timestamp": "2026-03-01T10:00:00Z",
                    "status": 404,
                    "error": "Not Found",
                    "path": "/",
                },
            ]
        ),
        # any other object
        *(
            (parent, "events", [], ["/shipments/0/events"])
            for parent in [
                {},
                {"number": "1"},
                {"scans": [EVENT]},
                {"number": {"value": "1"}},
                {"error": [], "scans": [EVENT]},
                {"code": 200, "message": "success", "scans": [{"code": "A"}]},
                {"message": "Not all were found", "scans": [EVENT]},
                {"status": {"message": "Delivered", "id": 11}},
                {"date": "2026-03-01", "number": "1"},
            ]
        ),
    ],
)
def test_a_list_is_read_or_says_that_there_is_nothing_or_its_absence_is_a_rejection(
    parent: JsonObject, name: str, found: list[tuple[int, JsonObject]], rejected: list[str]
) -> None:
    rejections = Rejections()
    assert objects_at(parent, name, "/shipments/0", rejections) == found
    assert [rejection.pointer for rejection in rejections] == rejected
    assert rejections.says_nothing is (not found and not rejected)


@pytest.mark.parametrize(("name", "rejected"), [("dates", []), ("scans", ["/events"])])
def test_the_absence_of_a_list_that_need_not_be_there_is_a_rejection_where_another_list_is_dated(
    name: str, rejected: list[str]
) -> None:
    rejections, parent = Rejections(), {"status": "delivered", name: [EVENT]}
    assert objects_at(parent, "events", "", rejections, required=False, but={"dates"}) == []
    assert [rejection.pointer for rejection in rejections] == rejected


def test_of_several_objects_where_one_is_known_the_first_is_read_and_a_rejection_says_so() -> None:
    rejections = Rejections()
    assert object_at({"shipment": [EVENT]}, "shipment", "", rejections) == EVENT
    assert not rejections
    assert object_at({"shipment": [EVENT, EVENT]}, "shipment", "", rejections) == EVENT
    assert [rejection.pointer for rejection in rejections] == ["/shipment"]


def test_a_member_that_is_not_recognised_is_rejected_unless_it_says_nothing() -> None:
    rejections = Rejections()
    members: list[tuple[str, JsonObject]] = [
        ("/0", {"number": "1"}),
        ("/1", {"no": {"value": "2"}}),
        ("/2", {"error": "unknown number"}),
    ]
    assert recognised(members, {"number"}, rejections) == [("/0", {"number": "1"})]
    assert [rejection.pointer for rejection in rejections] == ["/1"]


@pytest.mark.parametrize(
    ("printed", "found", "rejected"),
    [
        ("<a><Events><Event/></Events></a>", [1], []),
        ("<a><events><EVENT/></events></a>", [1], []),
        # under another name, where they are dated
        ("<a><number>1</number><due>2026-03-01</due></a>", [], []),
        ("<a><Scan><at>2026-03-01</at></Scan></a>", [], ["a/Events/Event"]),
        ("<a><Scan at='2026-03-01'/></a>", [], ["a/Events/Event"]),
    ],
)
def test_elements_are_read_in_each_spelling_or_rejected(
    printed: str, found: list[int], rejected: list[str]
) -> None:
    rejections = Rejections()
    elements = elements_at(etree.fromstring(printed), "Events/Event", "a", rejections)
    assert [number for number, _ in elements] == found
    assert [rejection.pointer for rejection in rejections] == rejected


MOVING = Meaning(Kind.SCAN, Status.IN_TRANSIT)
ON_VEHICLE = Meaning(Kind.SCAN, Status.OUT_FOR_DELIVERY)


@pytest.mark.parametrize(
    ("levels", "meaning"),
    [
        ((("OFD", ON_VEHICLE), ("transit", MOVING)), ON_VEHICLE),
        ((("NEW", None), ("transit", MOVING)), MOVING.of_category()),
        ((("NEW", UNMAPPED), ("transit", MOVING)), MOVING.of_category()),
        (((None, None), ("transit", MOVING)), MOVING),
        (((None, ON_VEHICLE), ("transit", MOVING)), MOVING),
        ((("NEW", None), ("NEWER", None), ("transit", MOVING)), MOVING.of_category()),
        ((("NEW", None), ("OFD", ON_VEHICLE), ("transit", MOVING)), ON_VEHICLE.of_category()),
        ((("NEW", None), ("other", None)), UNMAPPED),
        ((), UNMAPPED),
    ],
)
def test_a_category_is_believed_only_where_every_finer_field_is_unknown(
    levels: tuple[tuple[str | None, Meaning | None], ...], meaning: Meaning
) -> None:
    assert finest(*levels) == meaning


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
