"""`ralph docs [PAGE]`: guides and references of the installed version, without a network;
`ralph completion SHELL`: what makes a shell complete ralph's commands and options.
"""

from importlib.resources import files
from pathlib import Path

import click
from click.shell_completion import get_completion_class

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
        for name, path in pages.items():
            title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            output.emit_lines(output.row(name, title, width=width))
        return
    found = next((path for name, path in pages.items() if f"/{name}".endswith(f"/{page}")), None)
    if found is None:
        raise UsageError(f"there is no page {page[:40]!r}", "`ralph docs` lists them.")
    output.emit_markdown(found.read_text(encoding="utf-8"))


def _pages() -> dict[str, Path]:
    """By name, guides first; a clone has them beside the package, an installation inside."""
    package = Path(str(files("ralphloop")))
    places = (package / "docs", package.parents[1] / "docs")
    here = next(place for place in places if (place / "guides").is_dir())
    found = [*sorted(here.glob("guides/*.md")), *sorted(here.glob("reference/*.md"))]
    return {path.relative_to(here).with_suffix("").as_posix(): path for path in found}


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell; load it from your shell's start-up file.

    \b
    eval "$(ralph completion bash)"          in ~/.bashrc
    eval "$(ralph completion zsh)"           in ~/.zshrc
    ralph completion fish | source           in ~/.config/fish/config.fish
    """
    made = get_completion_class(shell)
    if made is not None:
        script = made(ctx.find_root().command, {}, "ralph", "_RALPH_COMPLETE").source()
        output.emit_lines([script.rstrip()])
