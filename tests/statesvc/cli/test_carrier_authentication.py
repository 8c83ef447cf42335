"""Texts of `carriers` and `doctor` about how a carrier proves itself, and what is left to do."""

from typing import Any

import pytest

from events.carriers import CARRIERS
from statesvc.cli.carrier_authentication import accepted, binds_body, open_points
from statesvc.ingress.scheme_words import described
from statesvc.settings.service_settings import load_settings


@pytest.mark.parametrize(
    ("carrier_id", "environment", "says", "opens"),
    [
        ("dpd", {}, ["?token="], ["refused: set STATESVC_WEBHOOK_SECRET_DPD"]),
        (
            "dpd",
            {"ALLOW_UNSIGNED_WEBHOOKS": "dpd"},
            ["?token="],
            ["anyone may push: set STATESVC_WEBHOOK_SECRET_DPD"],
        ),
        ("dpd", {"WEBHOOK_SECRET_DPD": "s"}, ["?token="], ["its secret may stand in the URL"]),
        ("dpd", {"WEBHOOK_IPS_DPD": "192.0.2.0/24"}, ["?token="], ["its address alone proves it"]),
        (
            "dpd",
            {"WEBHOOK_SECRET_DPD": "s", "WEBHOOK_AUTH_DPD": "header:X-Key"},
            ["secret in X-Key"],
            [],
        ),
        (
            "shipengine",
            {},
            ["RSA-SHA256 in x-shipengine-rsa-sha256-signature"],
            ["or STATESVC_WEBHOOK_JWKS_SHIPENGINE"],
        ),
        (
            "shipengine",
            {"WEBHOOK_JWKS_SHIPENGINE": "https://c.example/jwks"},
            ["RSA-SHA256 in x-shipengine-rsa-sha256-signature"],
            [],
        ),
        ("fedex", {"WEBHOOK_SECRET_FEDEX": "s"}, ["HMAC-SHA256 in fdx-signature"], []),
        (
            "easyship",
            {"WEBHOOK_SECRET_EASYSHIP": "s"},
            ["web token (HS256) in X-EASYSHIP-SIGNATURE"],
            [],
        ),
    ],
)
def test_a_carrier_says_how_it_is_proven_and_what_is_open(
    monkeypatch: pytest.MonkeyPatch,
    carrier_id: str,
    environment: dict[str, str],
    says: list[str],
    opens: list[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"STATESVC_{name}", value)
    settings, carrier = load_settings(), CARRIERS[carrier_id]
    assert described(accepted(carrier, settings)) == says
    points = open_points(carrier, settings)
    assert len(points) == len(opens)
    assert all(expected in point for expected, point in zip(opens, points, strict=True))


def test_every_scheme_of_every_carrier_has_words() -> None:
    for carrier in CARRIERS.values():
        assert all(described(carrier.schemes())), carrier.carrier_id


@pytest.mark.parametrize(
    ("carrier_id", "expected"),
    [("fedex", True), ("easyship", False), ("shippo", False), ("ups", False)],
)
def test_a_signature_binds_the_body_and_a_secret_does_not(
    carrier_id: str, *, expected: Any
) -> None:
    assert binds_body(CARRIERS[carrier_id].schemes()) is expected
