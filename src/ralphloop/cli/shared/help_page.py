"""How `--help` looks: bold heads, one accent colour, and no word that is broken or cut.

Loaded by every `ralph --help`: nothing heavy is imported.
"""

from collections.abc import Iterable

import click

from ralphloop.cli.output import paint

_ACCENT = "cyan"
_WHOLE = 1_000  # no limit: a sentence that does not fit goes on below


class HelpPage(click.HelpFormatter):
    """Heads are bold and names have the accent, where the terminal shows it."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(paint(prog, "bold"), args, prefix)

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{paint(f'{heading}:', 'bold')}\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Names and what they do."""
        painted = [(paint(name, _ACCENT), words) for name, words in rows]
        super().write_dl(painted, col_max, col_spacing)


class HelpContext(click.Context):
    """What every command of ours is run in."""

    formatter_class = HelpPage


def with_help_page(command: click.Command) -> click.Command:
    """The command, and all below it, with this help."""
    command.context_class = HelpContext
    if isinstance(command, click.Group):
        for below in command.commands.values():
            with_help_page(below)
            below.short_help = below.get_short_help_str(_WHOLE)
    return command
