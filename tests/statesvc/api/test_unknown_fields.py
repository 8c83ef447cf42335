from typing import Any

import orjson
import pytest

from events.entry import assemble
from events.entry.kinds import conflict_document, event_document
from events.vocabulary import Status
from statesvc.log.json_compression import decompress_json

MORE = {"unheard_of": {"a": [1, None]}, "zz": "x"}


@pytest.fixture
def later_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the log by a version that has more fields; everything that reads is ours."""

    def grown(document: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value | MORE if isinstance(value, dict) else value
            for name, value in document.items()
        } | MORE

    def event(*given: Any, **named: Any) -> dict[str, Any]:
        return grown(event_document(*given, **named))

    def conflict(*given: Any, **named: Any) -> dict[str, Any]:
        return grown(conflict_document(*given, **named))

    monkeypatch.setattr(assemble, "event_document", event)
    monkeypatch.setattr(assemble, "conflict_document", conflict)


@pytest.mark.usefixtures("later_version")
async def test_what_a_later_version_wrote_is_kept_folded_and_shown_without_what_is_not_known(
    api: Any, scan: Any
) -> None:
    await api.carriers.push(scan("1", Status.PICKED_UP, native_id="S1"))
    await api.carriers.push(
        scan("1", Status.DELIVERED, minutes=9), scan("1", Status.IN_TRANSIT, minutes=5)
    )
    await api.carriers.push(scan("1", Status.RETURNED, minutes=1, native_id="S1"))
    path = "/v1/shipments/ups/1"
    state = (await api.get(path)).body
    assert (state["status"], state["version"]) == ("delivered", 3)
    history = (await api.get(f"{path}/history")).body["items"]
    assert [event["status"] for event in history] == ["picked_up", "in_transit", "delivered"]
    audit = (await api.get(f"{path}/audit", scopes="audit pii")).body
    assert [event["version"] for event in audit["events"]] == [1, 2, 3]
    assert len(audit["conflicts"]) == 1
    for shown in (
        *history,
        *(event["location"] for event in history),
        *audit["events"],
        *audit["conflicts"],
    ):
        assert not MORE.keys() & shown.keys()
    kept = await api.rows("SELECT canonical FROM statesvc.event")
    assert [
        MORE.items() <= orjson.loads(decompress_json(stored)).items() for (stored,) in kept
    ] == [True] * 3
