"""The log over HTTP: the feed, heads and proofs, and where entries stand."""

import hashlib
from typing import Any

import pytest
from psycopg import AsyncConnection

from events.merkle.checkpoint import VerifierKey, open_checkpoint
from events.merkle.proof import verify_consistency, verify_inclusion
from events.merkle.proof_forms import Inclusion, check_receipt, check_tlog_proof, tlog_proof
from events.vocabulary import Status
from tests.world.database import without_triggers
from tests.world.log_builder import LogBuilder, root_of
from tests.world.log_builder import scan as said


@pytest.fixture
def log(api: Any) -> LogBuilder:
    return LogBuilder(api.connection, api.keyring)


async def note(api: Any, **query: str) -> Any:
    """Return the text of a head, or the status of a refusal."""
    reply = await api.get("/v1/checkpoint", params=query)
    return reply.body if reply.status == 200 else reply.status


async def verifiers(api: Any) -> list[VerifierKey]:
    reply = await api.get("/v1/checkpoint/keys")
    return [VerifierKey.parse(each["key"]) for each in reply.body["items"]]


async def follow(api: Any, *, after: int | str = -1, limit: int = 7) -> list[dict[str, Any]]:
    """Read the feed to its end, as a puller does."""
    found: list[dict[str, Any]] = []
    cursor: str | None = str(after)
    while cursor is not None:
        reply = await api.get("/v1/feed", scopes="audit", params={"after": cursor, "limit": limit})
        assert reply.status == 200, reply.body
        found += reply.body["items"]
        cursor = reply.body["next_cursor"]
    return found


def numbers(items: list[dict[str, Any]]) -> list[str]:
    return [item["entry"]["tracking_number"] for item in items if item["kind"] == "event"]


async def test_the_feed_is_the_whole_log_in_order(api: Any, log: LogBuilder) -> None:
    await log.everything()
    head = await log.seal()
    for limit in (1, 7, 1000):
        items = await follow(api, limit=limit)
        assert [item["index"] for item in items] == list(range(head.tree_size))
        assert [bytes.fromhex(item["leaf_hash"]) for item in items] == await log.leaves()
    assert {item["kind"] for item in items} == {
        "event",
        "conflict",
        "transition",
        "fanout",
        "attempt",
        "observation",
        "action",
    }
    assert await follow(api, after=f"1.{head.tree_size - 3}") == items[-2:]
    # an index alone is one of the first epoch
    assert await follow(api, after=head.tree_size - 3) == items[-2:]


async def test_a_reader_of_the_feed_goes_on_where_its_last_answer_ended(
    api: Any, log: LogBuilder
) -> None:
    await log.act()
    await log.seal()
    first = (await api.get("/v1/feed", scopes="audit")).body
    last = first["items"][-1]["index"]
    assert (first["next_cursor"], first["cursor"]) == (None, f"1.{last}")
    await log.act()
    await log.seal()
    then = (await api.get("/v1/feed", scopes="audit", params={"after": first["cursor"]})).body
    assert then["items"][0]["index"] == last + 1


async def test_a_cursor_that_no_answer_gave_is_refused(api: Any, log: LogBuilder) -> None:
    await log.act()
    await log.seal()
    for after, status, code in (
        ("1.x", 422, "invalid_request"),
        ("0.1", 422, "invalid_request"),
        ("2.0", 400, "invalid_cursor"),
        ("1", 400, "invalid_cursor"),
    ):
        reply = await api.get("/v1/feed", scopes="audit", params={"after": after})
        assert (reply.status, reply.body["code"]) == (status, code), after


async def test_an_entry_is_printed_in_the_bytes_that_were_hashed(api: Any, log: LogBuilder) -> None:
    await log.everything()
    await log.seal()
    headers = {"Authorization": f"Bearer {await api.key('audit')}"}
    async with api.client.get("/v1/feed", headers=headers, params={"limit": 1}) as answer:
        body = await answer.read()
    item = (await follow(api, limit=1))[0]
    printed = body.partition(b'"entry":')[2].partition(b"}],")[0]
    assert hashlib.sha256(b"\x00" + printed).hexdigest() == item["leaf_hash"]


async def test_the_feed_sees_what_commits_late_once_and_skips_nothing(
    api: Any, log: LogBuilder, database: Any
) -> None:
    async with await AsyncConnection.connect(database.service_dsn) as held:
        await held.execute("SET timezone = 'UTC'")
        await LogBuilder(held, log.keyring).append(said("1ZHELD", 1, None), commit=False)
        await log.append(said("1ZFIRST", 1, None))
        await log.seal()
        seen = await follow(api)
        assert numbers(seen) == ["1ZFIRST"]
        await held.commit()
        await log.seal()
        seen += await follow(api, after=seen[-1]["index"])
        assert numbers(seen) == ["1ZFIRST", "1ZHELD"]
        assert await follow(api) == seen


async def test_nothing_is_shown_before_its_head_is_published(api: Any, log: LogBuilder) -> None:
    await log.act()
    assert (await api.get("/v1/feed", scopes="audit")).body == {
        "items": [],
        "next_cursor": None,
        "cursor": "1.-1",
        "tree_size": 0,
    }
    assert (await api.get("/v1/feed", scopes="audit", params={"after": -1})).body["items"] == []


async def test_the_feed_never_passes_over_an_entry_that_is_gone(
    api: Any, log: LogBuilder, database: Any
) -> None:
    await log.parcel("1Z1", steps=3)
    await log.seal()
    async with without_triggers(database.superuser_dsn) as attacker:
        await attacker.execute("DELETE FROM statesvc.event WHERE version = 2")
    reply = await api.get("/v1/feed", scopes="audit")
    assert reply.status == 500
    assert "lacks its entry" in reply.body["detail"]


async def test_the_feed_holds_nothing_personal_and_needs_the_audit_scope(
    api: Any, scan: Any, log: LogBuilder
) -> None:
    await api.carriers.push(
        scan("1Z1", Status.DELIVERED, description="left with Ms. Example", signed_by="Example")
    )
    await log.seal()
    assert "xample" not in str(await follow(api))
    assert (await api.get("/v1/feed")).status == 403


async def test_a_head_is_signed_text(api: Any, log: LogBuilder) -> None:
    assert await note(api) == 404
    await log.everything()
    first = await log.seal()
    await log.act()
    second = await log.seal()
    text = await note(api)
    assert text == second.note
    opened = open_checkpoint(text, await verifiers(api), origin=log.origin)
    assert (opened.checkpoint.size, opened.checkpoint.root) == (
        second.tree_size,
        root_of(await log.leaves()),
    )
    assert await note(api, size="3") == first.note
    assert await note(api, size=str(second.tree_size + 1)) == 404


async def test_every_entry_is_proved(api: Any, log: LogBuilder) -> None:
    for _ in range(3):
        await log.everything()
        await log.seal()
    leaves = await log.leaves()
    for index in range(0, len(leaves), 5):
        body = (await api.get("/v1/proofs/inclusion", params={"index": index})).body
        head = open_checkpoint(body["checkpoint"], await verifiers(api)).checkpoint
        assert (head.size, head.root.hex(), body["leaf_hash"]) == (
            body["tree_size"],
            body["root"],
            leaves[index].hex(),
        )
        path = [bytes.fromhex(each) for each in body["path"]]
        assert verify_inclusion(
            leaves[index], index=index, size=head.size, path=path, root=head.root
        )


@pytest.mark.parametrize("media_type", ["text/plain", "application/cose"])
async def test_a_proof_comes_in_the_form_that_is_asked_for(
    api: Any, log: LogBuilder, media_type: str
) -> None:
    await log.everything()
    await log.seal()
    leaf_hash, (key, *_) = (await log.leaves())[1], await verifiers(api)
    body = (await api.get("/v1/proofs/inclusion", params={"index": 1})).body
    reply = await api.get("/v1/proofs/inclusion?index=1", headers={"Accept": media_type})
    assert reply.headers["Content-Type"].startswith(media_type)
    inclusion = Inclusion(1, tuple(bytes.fromhex(each) for each in body["path"]))
    if media_type == "text/plain":
        assert reply.body == tlog_proof(inclusion, body["checkpoint"])
        check_tlog_proof(reply.body, leaf_hash, [key])
    else:
        check_receipt(reply.body, leaf_hash, inclusion, body["checkpoint"], [key])


async def test_the_newest_head_that_witnesses_cosigned_comes_with_their_lines(
    api: Any, log: LogBuilder
) -> None:
    assert await note(api, cosigned="true") == 404
    await log.parcel("1Z0001")
    head = await log.seal()
    line = "— witness.example AAAAAAAA\n"
    await log.connection.execute(
        "INSERT INTO statesvc.cosigned_head VALUES (true, %s, %s, %s, '{}', statesvc.clock())",
        (head.tree_size, head.second_signature, line),
    )
    await log.parcel("1Z0002")
    newest = await log.seal()
    assert await note(api) == newest.note
    assert await note(api, cosigned="true") == head.note + line
    both = await note(api, cosigned="true", second_signature="true")
    assert both == f"{head.note}{head.second_signature}{line}"
    size = str(head.tree_size)
    assert await note(api, size=size) == head.note
    assert await note(api, size=size, cosigned="true") == 422
    asked = {"index": 0, "size": size}
    proof = await api.get("/v1/proofs/inclusion", params=asked, headers={"Accept": "text/plain"})
    assert proof.body.endswith(f"\n\n{head.note}{line}")


async def test_an_event_is_proved_by_its_ids(api: Any, log: LogBuilder, scan: Any) -> None:
    await api.carriers.push(scan("1Z1", Status.DELIVERED))
    shown = (await api.get("/v1/shipments/ups/1Z1/history")).body["items"][0]
    assert (shown["sealed_at"], shown["log_index"]) == (None, None)
    asked = {"carrier_id": "ups", "event_id": shown["event_id"]}
    reply = await api.get("/v1/proofs/inclusion", params=asked)
    assert (reply.status, reply.body["code"]) == (409, "not_sealed")
    head = await log.seal()
    proof = (await api.get("/v1/proofs/inclusion", params=asked)).body
    shown = (await api.get("/v1/shipments/ups/1Z1/history")).body["items"][0]
    audit = (await api.get("/v1/shipments/ups/1Z1/audit", scopes="audit")).body
    assert shown["log_index"] == proof["index"] == audit["events"][0]["log_index"]
    assert shown["sealed_at"] == head.created_at.isoformat()
    assert audit["events"][0]["leaf_hash"] == proof["leaf_hash"]
    assert [entry["log_index"] for entry in audit["transitions"]] == [1]
    reply = await api.get("/v1/proofs/inclusion", params=asked | {"event_id": "unknown"})
    assert (reply.status, reply.body["code"]) == (404, "not_found")


async def test_the_log_is_proved_to_have_grown_only(api: Any, log: LogBuilder) -> None:
    heads = []
    for _ in range(3):
        await log.everything()
        heads.append(await log.seal())
    for older in heads:
        for newer in heads[heads.index(older) :]:
            body = (
                await api.get(
                    "/v1/proofs/consistency",
                    params={"from": older.tree_size, "to": newer.tree_size},
                )
            ).body
            path = [bytes.fromhex(each) for each in body["path"]]
            roots = {"first_root": older.root, "second_root": newer.root}
            assert verify_consistency(
                first=older.tree_size, second=newer.tree_size, path=path, **roots
            )
            assert (body["from_root"], body["to_root"]) == (older.root.hex(), newer.root.hex())
    assert (await api.get("/v1/proofs/consistency", params={"from": 0})).body["to"] == heads[
        -1
    ].tree_size


async def test_a_proof_of_nothing_is_refused(api: Any, log: LogBuilder) -> None:
    await log.act()
    await log.seal()
    for path, code in (
        ("/v1/proofs/inclusion", "invalid_request"),
        ("/v1/proofs/inclusion?index=1&carrier_id=ups&event_id=x", "invalid_request"),
        ("/v1/proofs/inclusion?carrier_id=ups", "invalid_request"),
        ("/v1/proofs/inclusion?index=1", "not_sealed"),
        ("/v1/proofs/inclusion?index=-1", "invalid_request"),
        ("/v1/proofs/consistency?from=2&to=1", "not_sealed"),
        ("/v1/proofs/consistency?from=0&to=9", "not_sealed"),
        ("/v1/proofs/consistency", "invalid_request"),
    ):
        assert (await api.get(path)).body["code"] == code, path


async def test_a_changed_tree_gives_no_proofs(api: Any, log: LogBuilder, database: Any) -> None:
    for _ in range(2):
        await log.act()
        await log.seal()
    async with without_triggers(database.superuser_dsn) as attacker:
        await attacker.execute(
            "UPDATE statesvc.batch SET leaf_hashes = sha256('x') WHERE batch_id = 1"
        )
    for path in ("/v1/proofs/inclusion?index=1", "/v1/proofs/consistency?from=1"):
        reply = await api.get(path)
        assert reply.status == 500
        assert "statesvc verify" in reply.body["detail"]
