"""The report as an HTML page that needs nothing else: no script, no font and no picture from elsewhere."""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from statesvc.evidence import wording as words
from statesvc.evidence.evidence_report import EvidenceReport
from statesvc.evidence.report_sections import annex_of, details_of, verification_of


def html_of(report: EvidenceReport) -> bytes:
    """UTF-8. Every value is escaped: carriers and customers wrote most of them."""
    sections = [*details_of(report), *annex_of(report), verification_of(report)]
    return _template().render(report=report, sections=sections, words=words).encode()


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    return environment.from_string((files("statesvc.evidence") / "evidence.html").read_text("utf-8"))
