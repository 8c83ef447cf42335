"""The story as an HTML page that needs nothing else: no script, no picture, no font from elsewhere."""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined, Template

from statesvc.evidence import wording as words
from statesvc.evidence.narrative import Story


def page(story: Story) -> bytes:
    """UTF-8. Every value is escaped: carriers and customers wrote most of them."""
    return _template().render(story=story, words=words).encode()


@cache
def _template() -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    return environment.from_string((files("statesvc.evidence") / "evidence.html").read_text("utf-8"))
