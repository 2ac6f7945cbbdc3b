"""What mkdocs is told besides mkdocs.yml: README and changelog are pages of the site as well.

They stay where they are: their links are turned to where the site has the pages.  A link to a file
of the repository that the site does not have is left as words.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TAKEN = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_CODE = re.compile(r"(^ *```.*?^ *```$)", re.M | re.S)


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the pages that lie above the documents."""
    from mkdocs.structure.files import File

    for name, page in TAKEN.items():
        text = turned((ROOT / name).read_text(encoding="utf-8"), name, page)
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn the links of an ordinary page."""
    where = page.file.src_uri
    if where in TAKEN.values():
        return markdown
    return turned(markdown, f"docs/{where}", where)


def turned(text: str, source: str, page: str) -> str:
    """The text of a file of the repository with the links it has as a page of the site."""

    def link(found: re.Match[str]) -> str:
        mark, words, to = found.groups()
        path, _, anchor = to.partition("#")
        if "://" in to or to.startswith("mailto:") or not path:
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        there = TAKEN.get(target) or target.removeprefix("docs/")
        if target not in TAKEN and (not target.startswith("docs/") or (ROOT / target).is_dir()):
            return words
        leads = posixpath.relpath(there, posixpath.dirname(page) or ".")
        return f"{mark}[{words}]({leads}{'#' + anchor if anchor else ''})"

    parts = _CODE.split(text)
    return "".join(part if n % 2 else _LINK.sub(link, part) for n, part in enumerate(parts))
