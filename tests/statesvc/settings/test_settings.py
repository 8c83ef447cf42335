"""Settings come from the environment and a file, and keep their secrets to themselves."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from events.carriers import CARRIERS
from events.carriers.carrier import Basic, SharedHeader, UrlToken
from events.merkle.checkpoint import NoteSigner
from statesvc.roles.carrier_names import require_known_carriers
from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.env_file import VARIABLE, add_env_file, parsed
from statesvc.settings.known_settings import documented_settings
from statesvc.settings.service_settings import SECTIONS, load_settings, read_settings
from statesvc.settings.variable_names import UnknownVariableError, unknown_variables
from tests.world.witness import OtherWitness


def test_webhook_secrets_are_found_by_carrier_two_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STATESVC_WEBHOOK_SECRET_DHL_UNIFIED", "new, old")
    settings = load_settings()
    assert settings.webhook_secrets("dhl_unified") == ("new", "old")
    assert settings.webhook_secrets("ups") == ()


@pytest.mark.parametrize(
    ("value", "allowed"), [("1", {"ups", "fedex"}), ("ups,usps", {"ups"}), ("", set())]
)
def test_unsigned_webhooks_are_allowed_for_all_or_for_those_named(
    monkeypatch: pytest.MonkeyPatch, value: str, allowed: set[str]
) -> None:
    monkeypatch.setenv("STATESVC_ALLOW_UNSIGNED_WEBHOOKS", value)
    ingress = load_settings().ingress
    assert {carrier for carrier in ("ups", "fedex") if ingress.allows_unsigned(carrier)} == allowed


def test_secrets_show_neither_in_a_repr_nor_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (
        "DATABASE_URL",
        "STATESVC_OWNER_URL",
        "STATESVC_MASTER_KEY",
        "STATESVC_BOOTSTRAP_KEY",
        "STATESVC_WEBHOOK_SECRET_UPS",
    ):
        monkeypatch.setenv(variable, "hush-hush, and more than 24 characters")
    assert "hush-hush" not in repr(load_settings())
    monkeypatch.setenv("STATESVC_PORT", "hush-hush")
    with pytest.raises(ValidationError) as refused:
        load_settings()
    assert "port" in str(refused.value)
    assert "hush-hush" not in str(refused.value)


def test_witnesses_are_a_key_and_a_url_each_and_a_majority_of_them_is_the_quorum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = [OtherWitness(f"w{number}.example", is_ml_dsa=number == 2).key for number in (1, 2, 3)]
    named = [f"{key} https://{key.partition('+')[0]}/" for key in keys]
    monkeypatch.setenv("STATESVC_CHECKPOINT_WITNESSES", ", ".join(named))
    checkpoint = load_settings().checkpoint
    assert [str(witness.key) for witness in checkpoint.witnesses] == keys
    assert checkpoint.witnesses[0].url == "https://w1.example"
    assert checkpoint.quorum == 2
    monkeypatch.setenv("STATESVC_CHECKPOINT_WITNESS_QUORUM", "4")
    with pytest.raises(ValidationError, match="and there are 3"):
        load_settings()


LOG_KEY = NoteSigner.fresh("log.example").verifier
WITNESS = f"{OtherWitness().key} https://w1.example"


def test_every_setting_says_what_it_means() -> None:
    assert [setting.variable for setting in documented_settings() if not setting.meaning] == []


def test_the_passwords_with_which_the_roles_were_made_may_stay_in_the_shell() -> None:
    assert (
        unknown_variables(
            dict.fromkeys(("STATESVC_OWNER_PASSWORD", "STATESVC_SERVICE_PASSWORD"), "x"), SECTIONS
        )
        == []
    )


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("STATESVC_PROT", "Did you mean STATESVC_PORT?"),
        (
            "STATESVC_SECRETS",
            "unknown setting STATESVC_SECRETS. If it is your own, call it something",
        ),
        ("STATESVC_WORKER_LEASE", "unknown setting STATESVC_WORKER_LEASE"),
        ("STATESVC_WEBHOOK_SECRETS_UPS", "Did you mean STATESVC_WEBHOOK_SECRET_?"),
        ("STATESVC_SERVICE_HOST", "enableServiceLinks"),
    ],
)
def test_nothing_starts_with_a_misspelt_variable_and_it_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, says: str
) -> None:
    monkeypatch.setenv(variable, "hush-hush")
    with pytest.raises(UnknownVariableError) as refused:
        load_settings()
    assert says in str(refused.value)
    assert "hush-hush" not in str(refused.value)
    read_settings()


def test_an_empty_secret_counts_as_unset_but_never_lets_a_carrier_in_unsigned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STATESVC_WEBHOOK_SECRET_UPS", "")
    assert not load_settings().authenticates("ups")
    monkeypatch.setenv("STATESVC_ALLOW_UNSIGNED_WEBHOOKS", "ups")
    with pytest.raises(
        SettingError, match=r"STATESVC_WEBHOOK_SECRET_UPS is empty.*lets ups in unsigned"
    ):
        load_settings()


def test_addresses_and_key_sets_are_found_by_carrier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATESVC_WEBHOOK_IPS_FEDEX", "20.65.16.22/31, 2001:db8::1")
    monkeypatch.setenv("STATESVC_WEBHOOK_JWKS_SHIPENGINE", " https://carrier.example/jwks ")
    monkeypatch.setenv("STATESVC_WEBHOOK_SECRET_UPS", "s")
    settings = load_settings()
    assert [str(network) for network in settings.webhook_networks["FEDEX"]] == [
        "20.65.16.22/31",
        "2001:db8::1/128",
    ]
    assert settings.webhook_key_sets == {"SHIPENGINE": "https://carrier.example/jwks"}
    assert [
        settings.authenticates(carrier) for carrier in ("fedex", "shipengine", "ups", "usps")
    ] == [True, True, True, False]


def test_what_a_shipper_agreed_on_is_read_by_carrier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATESVC_WEBHOOK_SECRET_DPD", "s")
    monkeypatch.setenv("STATESVC_WEBHOOK_AUTH_DPD", " Header:X-Api-Key, bearer,query:key ,bearer")
    monkeypatch.setenv("STATESVC_WEBHOOK_SECRET_GLS", "user:password")
    monkeypatch.setenv("STATESVC_WEBHOOK_AUTH_GLS", "basic")
    settings = load_settings()
    require_known_carriers(settings)
    assert settings.chosen_authentication == {
        "DPD": (
            SharedHeader(header="X-Api-Key"),
            SharedHeader(header="Authorization", prefix="Bearer "),
            UrlToken(parameter="key"),
        ),
        "GLS": (Basic(),),
    }


COMMAS = "holds nothing but commas"
WAYS = "must be one or more of header:NAME, bearer, basic, query:NAME"
HUSH = {f"STATESVC_WEBHOOK_SECRET_{carrier}": "hush-hush" for carrier in ("DPD", "FEDEX", "DPDD")}


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"STATESVC_WORKER_LEASE_SECONDS": "15"}, "STATESVC_WORKER_LEASE_SECONDS"),
        ({"STATESVC_CHECKPOINT_WITNESSES": "w1.example"}, "a witness reads"),
        ({"STATESVC_CHECKPOINT_WITNESSES": f"{LOG_KEY} ftp://w1.example"}, "a witness reads"),
        ({"STATESVC_CHECKPOINT_WITNESSES": f"{LOG_KEY} https://w1.example"}, "a verifier key"),
        ({"STATESVC_CHECKPOINT_WITNESSES": f"{WITNESS},{WITNESS}"}, "named twice"),
        *(
            (
                {"STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "ups", variable: value},
                f"{variable} {COMMAS}",
            )
            for variable in ("STATESVC_WEBHOOK_SECRET_UPS", "STATESVC_WEBHOOK_IPS_UPS")
            for value in (",", " , ", ",,")
        ),
        (
            {"STATESVC_WEBHOOK_SECRET_UPSS": "x", "STATESVC_ALLOW_UNSIGNED_WEBHOOKS": "fedx"},
            r"STATESVC_WEBHOOK_SECRET_UPSS is for no carrier.*UPS.*names fedx.*fedex",
        ),
        ({"STATESVC_WEBHOOK_IPS_UPS": "20.65.16"}, "STATESVC_WEBHOOK_IPS_UPS"),
        ({"STATESVC_WEBHOOK_JWKS_UPS": "http://carrier.example"}, "STATESVC_WEBHOOK_JWKS_UPS"),
        ({"STATESVC_CARRIER_ZONE_UPS": "US"}, "several zones"),
        ({"STATESVC_CARRIER_ZONE_UPS": "Mars/Olympus"}, "must be a zone"),
        ({"STATESVC_CARRIER_ZONE_UPS": "../etc/passwd"}, "must be a zone"),
        ({"STATESVC_WEBHOOK_AUTH_DPD": "hush-hush"}, f"STATESVC_WEBHOOK_AUTH_DPD {WAYS}"),
        *(
            ({"STATESVC_WEBHOOK_AUTH_DPD": value}, WAYS)
            for value in (
                "header",
                "header:",
                "header:X Key",
                "header:X-Key:hush-hush",
                "bearer:hush-hush",
                "query:a&b",
            )
        ),
        (
            {"STATESVC_WEBHOOK_AUTH_DPD": "header:Content-Type"},
            "a header that every request has",
        ),
        (
            {"STATESVC_WEBHOOK_AUTH_DPD": "basic"},
            "STATESVC_WEBHOOK_SECRET_DPD must be user:password",
        ),
        ({"STATESVC_WEBHOOK_AUTH_DPD": ","}, COMMAS),
        ({"STATESVC_WEBHOOK_AUTH_GLS": "bearer"}, "STATESVC_WEBHOOK_SECRET_GLS is not"),
        (
            {"STATESVC_WEBHOOK_AUTH_FEDEX": "bearer"},
            "STATESVC_WEBHOOK_AUTH_FEDEX has nothing to choose: fedex",
        ),
        (
            {"STATESVC_WEBHOOK_AUTH_DPDD": "bearer"},
            "STATESVC_WEBHOOK_AUTH_DPDD is for no carrier that is known: did you mean DPD",
        ),
    ],
)
def test_what_cannot_work_is_refused_by_name_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], says: str
) -> None:
    of_carrier = {name for name in HUSH if name.rpartition("_")[2] in str(variables)}
    for name, value in {**{name: HUSH[name] for name in of_carrier}, **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises((SettingError, ValidationError), match=says) as refused:
        require_known_carriers(load_settings())
    assert "hush-hush" not in str(refused.value)


def test_the_zone_of_an_account_is_a_name_or_the_code_of_a_country_with_one_zone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STATESVC_CARRIER_ZONE_JTEXPRESS", "VN, EG")
    monkeypatch.setenv("STATESVC_CARRIER_ZONE_UPS", "America/Denver")
    settings = load_settings()
    assert settings.account_zones == {
        "JTEXPRESS": ("Asia/Ho_Chi_Minh", "Africa/Cairo"),
        "UPS": ("America/Denver",),
    }
    carriers = settings.in_account_zones(CARRIERS)
    assert (carriers["jtexpress"].account_zones, carriers["fedex"]) == (
        ("Asia/Ho_Chi_Minh", "Africa/Cairo"),
        CARRIERS["fedex"],
    )


def test_a_value_is_taken_as_it_stands() -> None:
    text = "# a comment\n\n  A = b # c \nURL=postgresql://u:p%20w$1@h/db?a=b\n\t# another\nEMPTY=\n"
    assert parsed(text, "f") == {
        "A": "b # c",
        "URL": "postgresql://u:p%20w$1@h/db?a=b",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A=1\nexport B=2", "f, line 2: write NAME=value"),
        ("no equals sign: hunter2", "f, line 1: write NAME=value"),
        ("A=1\nA=2", "f, line 2: A is set twice"),
        ('A="hunter2"', "f, line 1: the value of A must have no quotes"),
        ("A='hunter2'", "f, line 1: the value of A must have no quotes"),
        ("A=hunter2\\", "f, line 1: the value of A must have no quotes"),
    ],
)
def test_what_others_would_read_in_another_way_is_refused_and_not_shown(
    text: str, says: str
) -> None:
    with pytest.raises(SettingError, match=says) as refused:
        parsed(text, "f")
    assert "hunter2" not in str(refused.value)


def test_the_environment_wins_and_the_name_of_the_file_goes(tmp_path: Path) -> None:
    file = tmp_path / "s.env"
    file.write_text("A=file\nB=file\n")
    environment = {"A": "set", VARIABLE: str(file)}
    add_env_file(file, environment)
    assert environment == {"A": "set", "B": "file"}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="missing cannot be read: No such file"):
        add_env_file(tmp_path / "missing", {})
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingError, match="not UTF-8"):
        add_env_file(tmp_path / "binary", {})
