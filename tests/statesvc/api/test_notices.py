"""Notices are listed newest first, and marked as seen once."""

from datetime import UTC, datetime
from typing import Any

from statesvc.health.notices import Notice, NoticeKind, write_notices

PATH = "/v1/notices"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


async def test_they_are_paged_newest_first_and_unseen_ones_filtered(api: Any) -> None:
    for place in range(5):
        notice = Notice(
            kind=NoticeKind.FAILING, target=f"subscription {place}", details={"failures": place}
        )
        await write_notices(api.connection, [notice], now=NOW)
    pages = await api.pages(PATH, scopes="ops", limit="3")
    assert [[one["target"][-1] for one in page] for page in pages] == [["4", "3", "2"], ["1", "0"]]
    newest = pages[0][0]
    assert (newest["kind"], newest["details"], newest["seen_at"]) == (
        NoticeKind.FAILING,
        {"failures": 4},
        None,
    )
    seen = await api.call("POST", f"{PATH}/{newest['notice_id']}/seen", scopes="ops")
    assert (seen.status, seen.body["seen_by"][:4]) == (200, "key:")
    again = await api.call("POST", f"{PATH}/{newest['notice_id']}/seen", scopes="admin")
    assert again.body == seen.body, "who saw it first stays"
    unseen = (await api.get(PATH, scopes="ops", params={"unseen": "true"})).body["items"]
    assert [one["target"][-1] for one in unseen] == ["3", "2", "1", "0"]
    assert await api.rows(
        "SELECT actor, target FROM statesvc.action WHERE verb = 'notice.seen'"
    ) == [(seen.body["seen_by"], f"notice {newest['notice_id']}")]


async def test_strange_ones_are_refused(api: Any) -> None:
    assert (await api.call("POST", f"{PATH}/999/seen", scopes="ops")).body["code"] == "not_found"
    assert (await api.call("POST", f"{PATH}/0/seen", scopes="ops")).status == 422
    assert (await api.get(PATH, scopes="ops", params={"cursor": "nonsense"})).body[
        "code"
    ] == "invalid_cursor"
    assert (await api.get(PATH, scopes="read subscriptions")).status == 403
