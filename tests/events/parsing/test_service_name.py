"""Names of services: what counts as one, and how they are compared."""

import pytest

from events.parsing.service_name import SERVICE_CHARACTERS_MAX, service_key, service_name


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("UPS Ground", "UPS Ground"),
        ("  UPS \u00a0 Ground\u00ae ", "UPS Ground"),
        ("FEDEX_2_DAY", "FEDEX_2_DAY"),
        ("USPS Ground Advantage \u2122", "USPS Ground Advantage"),
        (
            "DHL Express Worldwide 0-1kg - incoterm DAP",
            "DHL Express Worldwide 0-1kg - incoterm DAP",
        ),
        ("003089", "003089"),
        ("N", "N"),
    ],
)
def test_a_service_as_it_is_recorded(printed: str, name: str) -> None:
    assert service_name(printed) == name


@pytest.mark.parametrize(
    "printed",
    [
        None,
        "",
        " ",
        "null",
        "N/A",
        "string",
        "UNKNOWN - Product unknown",
        "x" * (SERVICE_CHARACTERS_MAX + 1),
        " " * 1_000_000 + "x",
        "P. Sample, p@example.com",
        "call +49 (170) 123-4567",
        "a\x00b",
    ],
)
def test_what_names_no_service_is_left_out(printed: str | None) -> None:
    assert service_name(printed) is None


def test_case_width_and_blanks_do_not_matter() -> None:
    assert service_key("UPS  ground") == service_key("\uff35\uff30\uff33 GROUND") == "ups ground"
    assert service_key(None) is None
