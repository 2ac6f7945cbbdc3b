"""`ralph completion`: the completion script of a shell."""

import click

from ralphloop.errors import UsageError

# A bare Mac loads no completion system before the first `compdef`.
_ZSH_READY = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u; }\n"
# What an entry is explained with has commas of its own, at which a fish would cut it.
_FISH_CUTS = 'string split "," $completion'
_FISH_KEEPS = 'string split --max 1 "," $completion'
_PROGRAMS = ("ralph", "ralphloop")  # both names of the program


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell; load it from your shell's start-up file.

    \b
    eval "$(ralph completion bash)"          in ~/.bashrc
    eval "$(ralph completion zsh)"           in ~/.zshrc
    ralph completion fish | source           in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from ralphloop.cli.main import ralph

    if shell == "zsh":
        click.echo(_ZSH_READY)
    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"there is no completion for {shell}", "One of: bash, zsh, fish.")
    for program in _PROGRAMS:
        script = found(ralph, {}, program, "_RALPH_COMPLETE").source()
        click.echo(script.replace(_FISH_CUTS, _FISH_KEEPS))
