from pathlib import Path

import pytest

from statesvc.settings.carrier_settings import SettingError
from statesvc.settings.env_file import VARIABLE, add_env_file, parsed


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
