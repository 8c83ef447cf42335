"""`PUT /v1/subscriptions/{id}` and its secret: the same call again changes nothing, and
another one is refused.
"""

import base64
from typing import Any
from uuid import uuid4

import pytest

from statesvc.http.keys.key_store import Scope
from tests.statesvc.subscriptions.conftest import URL, Api

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
SEED = "whsk_" + base64.b64encode(bytes(range(32))).decode()


async def test_a_subscription_is_made_once_under_the_id_and_the_secret_that_were_chosen(
    api: Api,
) -> None:
    path = f"/{uuid4()}"
    wish = {
        "url": URL,
        "carriers": ["ups", "fedex"],
        "rate_per_second": 2.5,
        "give_up_after_seconds": {"shipment.updated": 60},
    }
    assert (await api("PUT", path, {**wish, "secret": SECRET}))[0] == 201
    status, found = await api("PUT", path, {**wish, "carriers": ["fedex", "ups"], "secret": SECRET})
    assert (status, found["id"], "secret" in found) == (200, path[1:], False)
    assert await api.rows(
        "SELECT count(*) FROM statesvc.action WHERE verb = 'subscription.create'"
    ) == [(1,)]
    others: list[dict[str, Any]] = [
        {"url": f"{URL}/2"},
        {"carriers": ["ups"]},
        {"rate_per_second": 2},
        {"give_up_after_seconds": {}},
        {"coalesce": False},
    ]
    for other in others:
        assert (await api("PUT", path, {**wish, "secret": SECRET, **other}))[1][
            "code"
        ] == "conflict"
    assert (await api("PUT", path, {**wish, "secret": SECRET[:-6] + "BBBBA="}))[1][
        "code"
    ] == "conflict"


async def test_another_owner_and_a_deleted_subscription_are_a_conflict_that_says_nothing_of_them(
    api: Api,
) -> None:
    path, wish = f"/{uuid4()}", {"url": URL, "secret": SECRET}
    assert (await api("PUT", path, wish))[0] == 201
    own, api.key = api.key, await api.another(Scope.SUBSCRIPTIONS, owner="stranger")
    status, refused = await api("PUT", path, wish)
    assert (status, refused["code"]) == (409, "conflict")
    assert (await api("PUT", f"{path}/secret", {"secret": SECRET}))[0] == 404
    api.key = own
    assert (await api("DELETE", path))[0] == 204
    assert (await api("PUT", path, wish))[1] == refused


async def test_a_chosen_secret_replaces_the_present_one_and_again_changes_nothing(api: Api) -> None:
    made = await api.make(key_type="ed25519")
    path = f"/{made['id']}/secret"
    status, shown = await api("PUT", path, {"secret": SEED, "grace_hours": 1})
    assert (status, len(shown["public_keys"])) == (200, 2)
    assert (await api("PUT", path, {"secret": SEED, "grace_hours": 1}))[1]["public_keys"] == shown[
        "public_keys"
    ]
    status, shown = await api("PUT", path, {"secret": SECRET, "grace_hours": 0})
    assert (shown["key_type"], shown["public_keys"]) == ("hmac", [])
    rotated = await api.rows(
        "SELECT count(*) FROM statesvc.action WHERE verb = 'subscription.rotate_secret'"
    )
    assert rotated == [(2,)]


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsec_AAAA",
        SECRET[:-1],
        SECRET.replace("whsec_", ""),
        SEED + "A",
        "whsec_" + "A" * 88,
        "whsk_" + "A" * 32,
    ],
)
async def test_what_is_no_secret_is_refused_without_repeating_it(api: Api, secret: str) -> None:
    for path in (f"/{uuid4()}", f"/{uuid4()}/secret"):
        body: dict[str, Any] = (
            {"secret": secret} if path.endswith("secret") else {"url": URL, "secret": secret}
        )
        status, problem = await api("PUT", path, body)
        assert (status, [error["pointer"] for error in problem["errors"]]) == (
            422,
            ["/body/secret"],
        )
        assert len(secret) < 8 or secret not in str(problem)


async def test_a_secret_of_the_other_kind_is_refused(api: Api) -> None:
    status, problem = await api("PUT", f"/{uuid4()}", {"url": URL, "secret": SEED})
    assert (status, "different kinds" in str(problem)) == (422, True)
