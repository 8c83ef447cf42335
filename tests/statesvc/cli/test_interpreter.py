"""Findings of doctor about the Python that runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from statesvc.cli.doctor.interpreter import Interpreter, check_interpreter, interpreter
from statesvc.health.finding import Urgency

MAKEFILE = Path(__file__).parents[3] / "Makefile"


def test_an_optimised_build_is_well_and_another_is_named_as_a_weakness() -> None:
    assert (
        check_interpreter(Interpreter(optimised=True, text="CPython 3.11.2")).urgency is Urgency.OK
    )
    slow = check_interpreter(Interpreter(optimised=False, text="CPython 3.11.7"))
    assert slow.urgency is Urgency.HUMAN
    assert slow.text.startswith("CPython 3.11.7")


@pytest.mark.usefixtures("own_processes")
@pytest.mark.parametrize(
    ("prefix", "arguments", "optimised"),
    [
        ("/usr", "'--enable-shared'", True),
        ("/opt/python", "'--enable-optimizations'", True),
        ("/opt/python", "'--enable-shared'", False),
    ],
)
def test_make_and_doctor_know_a_build_by_the_same_rule(
    monkeypatch: pytest.MonkeyPatch, prefix: str, arguments: str, *, optimised: bool
) -> None:
    monkeypatch.setattr("sys.base_prefix", prefix)
    monkeypatch.setattr("sysconfig.get_config_var", {"CONFIG_ARGS": arguments}.get)
    assert interpreter().optimised is optimised
    (rule,) = re.findall(r"optimised\(\) \{ \"\$\$1\" -c '(.*?)'; \}", MAKEFILE.read_text())
    probe = (
        f"import sys, sysconfig; sys.base_prefix = {prefix!r}; sysconfig.get_config_var ="
        f" {{'CONFIG_ARGS': {arguments!r}}}.get; {rule}"
    )
    assert (subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0) is optimised
