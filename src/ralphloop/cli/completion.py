"""`ralph completion SHELL`: what makes a shell complete ralph's commands and options."""

import click
from click.shell_completion import get_completion_class

from ralphloop.cli import output


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
