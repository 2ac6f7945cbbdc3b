"""`ralph docs [PAGE]`: guides and references of the installed version, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.errors import UsageError


@click.command()
@click.argument("page", required=False)
def docs(page: str | None) -> None:
    """List the guides and references of this version, or show one of them.

    \b
    ralph docs first-night
    ralph docs reference/agents
    """
    pages = _pages()
    if page is None:
        width = max(map(len, pages), default=0) + 2
        output.emit_lines(line for name, path in pages.items() for line in _row(name, path, width))
        return
    found = next((path for name, path in pages.items() if f"/{name}".endswith(f"/{page}")), None)
    if found is None:
        raise UsageError(f"there is no page {page[:40]!r}", "`ralph docs` lists them.")
    output.emit_markdown(found.read_text(encoding="utf-8"))


def _row(name: str, path: Path, width: int) -> Iterator[str]:
    title = path.read_text(encoding="utf-8").partition("\n")[0]
    return output.row(name, title.removeprefix("# "), width=width)


def _pages() -> dict[str, Path]:
    """By name, guides first; a clone has them beside the package, an installation inside."""
    package = Path(str(files("ralphloop")))
    places = (package / "docs", package.parents[1] / "docs")
    here = next(place for place in places if (place / "guides").is_dir())
    found = [*sorted(here.glob("guides/*.md")), *sorted(here.glob("reference/*.md"))]
    return {path.relative_to(here).with_suffix("").as_posix(): path for path in found}
