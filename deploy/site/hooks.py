"""Hooks that make MkDocs pages of our documents, which are written to be read on a forge and in an
editor, and stay as they are.

- The pages next to the README belong to the site. A link to any other file of the
  tree becomes its text.
- Lists, tables and what is nested in lists follow CommonMark; Python-Markdown wants blank lines
  before them and indents of four.
- The navigation follows from the first table of docs/README.md and the folders: a new page is
  in it without an edit.
- `llms.txt` lists the pages for agents (llmstxt.org).
- Nothing is fetched from elsewhere: a page that names a script, a style, a font or a picture on
  another host fails the build.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
OF_THE_ROOT: Final = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
MERMAID: Final = "assets/vendor/mermaid-tiny-11.17.2.min.js"

LINK: Final = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
FENCE: Final = re.compile(r"^ *(`{3,})")
BLOCK_START: Final = re.compile(r"^ *(?:[-*] |\d+\. |\||```)")
EXTERNAL: Final = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^\s\"'>]+",
    re.IGNORECASE,
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Build the navigation: the pages by reader, then all others by folder."""
    readers = _reader_pages()
    others = [
        name
        for name in sorted(path.name for path in DOCS.glob("*.md"))
        if name not in {"README.md", *readers}
    ]
    config.nav = [
        {"Begin": ["README.md", *readers]},
        {"Reference": [*others, *(name for name in OF_THE_ROOT if name not in readers)]},
        *(
            {folder.name.capitalize(): _pages(folder)}
            for folder in sorted(DOCS.iterdir())
            if any(folder.glob("*.md"))
        ),
    ]
    return config


def _reader_pages() -> list[str]:
    table = (DOCS / "README.md").read_text("utf-8").partition("\n## ")[0]
    linked = (_site_path("README.md", match["path"]) for match in LINK.finditer(table))
    return list(dict.fromkeys(path for path in linked if path is not None and "/" not in path))


def _pages(folder: Path) -> list[str]:
    names = sorted(
        (path.name for path in folder.glob("*.md")), key=lambda name: (name != "README.md", name)
    )
    return [f"{folder.name}/{name}" for name in names]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand next to the README."""
    for name in OF_THE_ROOT:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the page as Python-Markdown wants it, with links that lead somewhere in the site."""

    def link(match: re.Match[str]) -> str:
        target = _site_path(page.file.src_uri, match["path"])
        if target is None:
            return match["text"]
        path = posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or ".")
        return f"[{match['text']}]({path}{match['anchor'] or ''})"

    return "\n".join(
        line if is_code else LINK.sub(link, line) for line, is_code in _spaced(markdown)
    )


def _site_path(page: str, path: str) -> str | None:
    """Return where a page's link leads within the site, None for a link out of it.

    Pages of the root link as they do there.
    """
    folder = ROOT if page in OF_THE_ROOT else (DOCS / page).parent
    target = Path(posixpath.normpath(folder / path))
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    return target.name if target.parent == ROOT and target.name in OF_THE_ROOT else None


def _spaced(markdown: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is code, with a blank line where a block begins and indents
    that are multiples of four.
    """
    fence, shift, before = "", 0, ""
    for line in markdown.split("\n"):
        if not fence:
            indent = len(line) - len(line.lstrip())
            shift = -indent % 4 if indent > 1 else 0
        opening = FENCE.match(line)
        is_code = bool(fence)
        if not fence and before.strip() and _kind(line) not in {"", _kind(before)}:
            yield "", False
        yield " " * shift * bool(line) + line, is_code
        if opening:
            fence = "" if fence else opening[1]
            before = line
        elif not fence:
            before = line if line[:1] != " " or _kind(line) else before


def _kind(line: str) -> str:
    """Return `list`, `table` or `fence` where one of these begins or goes on, else nothing."""
    found = BLOCK_START.match(line)
    if found is None:
        return ""
    mark = found[0].strip()
    return "table" if mark == "|" else "fence" if mark == "```" else "list"


def on_page_content(html: str, page: Page, **_: object) -> str:
    """Add the script of the diagrams where there is a diagram: the theme would fetch it."""
    if 'class="mermaid"' not in html:
        return html
    path = posixpath.relpath(MERMAID, posixpath.dirname(page.url) or ".")
    return f'<script src="{path}"></script>{html}'


def on_env(_env: object, config: MkDocsConfig, files: Files) -> None:
    """Write `llms.txt`: each page, and the sentence that it begins with."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", "## Pages", ""]
    for file in files.documentation_pages():
        page = file.page
        if page is None or page.markdown is None:
            continue
        texts = [line for line in page.markdown.split("\n") if line and line[0] not in "#|`<!-"]
        begins = LINK.sub(r"\g<text>", texts[0]) if texts else ""
        sentence = re.split(r"(?<=[.?:]) ", begins)[0]
        lines.append(f"- [{page.title}]({file.url}): {sentence}")
    folder = Path(config.site_dir)
    folder.mkdir(exist_ok=True)
    (folder / "llms.txt").write_text("\n".join([*lines, ""]), "utf-8")


def on_post_build(config: MkDocsConfig) -> None:
    """Check the built pages.

    Raises PluginError where a page would have a browser fetch something from another host.
    """
    for path in sorted(Path(config.site_dir).rglob("*.html")):
        if found := EXTERNAL.search(path.read_text("utf-8")):
            raise PluginError(f"{path.name} fetches from elsewhere: {found[0]}")
