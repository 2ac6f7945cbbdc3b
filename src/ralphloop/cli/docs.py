"""`ralph docs`: the guides and references of this version."""

import click
from click.shell_completion import CompletionItem

from ralphloop.cli import output
from ralphloop.cli.shared.doc_pages import (
    every_page,
    find_words,
    for_terminal,
    page_called,
    section_of,
)
from ralphloop.errors import UsageError

_MOST_PAGES = 12


def _complete_page(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Names of pages that begin with what was typed, with their directory and without."""
    names = [name for page in every_page() for name in (page, page.rpartition("/")[2])]
    return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(typed)]


@click.command()
@click.argument("page", required=False, shell_complete=_complete_page)
@click.option("--search", "-s", "words", help="Find the pages that have these words.")
def docs(page: str | None, words: str | None) -> None:
    """List the pages of this version, show one or a part of it, or find words in them.

    \b
    ralph docs first-night
    ralph docs commands#ralph-status
    ralph docs --search "usage limit"
    """
    if words is not None:
        _search(words)
    elif page is None:
        _list()
    else:
        _show(page)


def _list() -> None:
    pages = {name: it for name, it in every_page().items() if not name.startswith("decisions/")}
    width = max(map(len, pages), default=0) + 2
    for name, page in pages.items():
        output.emit_lines(output.row(name, page.title, width=width))
    more = "decisions/README lists why things are as they are; --search WORD finds pages."
    output.emit_lines(["", more])


def _show(asked: str) -> None:
    pages = every_page()
    name, _, anchor = asked.partition("#")
    page = page_called(name, pages)
    if page is None:
        step = f"`ralph docs` lists them; `ralph docs --search {name[:40]}` looks into them."
        raise UsageError(f"there is no page {name[:40]!r}", step)
    text = section_of(page.text, anchor) if anchor else page.text
    if not text:
        words = f"{page.name} has no heading {anchor[:60]!r}"
        raise UsageError(words, f"`ralph docs {page.name}` shows all of it.")
    output.emit_markdown(for_terminal(page, text, pages))


def _search(words: str) -> None:
    found = list(find_words(words, every_page())) if words.strip() else []
    if not found:
        raise UsageError(f"no page has {words[:60]!r}", "`ralph docs` lists them all.")
    for page, lines in found[:_MOST_PAGES]:
        output.emit_lines(output.row(page.name, page.title, "bold", width=len(page.name) + 2))
        for line in lines:
            output.emit_lines(output.row("", line, width=4))
    if len(found) > _MOST_PAGES:
        others = ", ".join(it.page.name for it in found[_MOST_PAGES:])
        output.emit_lines(output.row("", f"and in: {others}", width=0))
