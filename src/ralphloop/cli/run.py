"""`ralph run`: the loop, in the foreground, detached, or only as a plan."""

import sys
from pathlib import Path

import click

from ralphloop.cli import circuit, output
from ralphloop.cli.shared.detach import run_detached
from ralphloop.cli.shared.dry_run import show_plan
from ralphloop.cli.shared.foreground import run_here, tell_of_no_git
from ralphloop.cli.shared.from_queue import run_queue
from ralphloop.cli.shared.options import FILE, complete_story, number
from ralphloop.cli.shared.run_options import common_options, options_of, setting_option
from ralphloop.cli.shared.steering import refuse_agent
from ralphloop.cli.shared.tmux import run_beside_monitor
from ralphloop.errors import ExitCode, UsageError
from ralphloop.loop.prepare import Options, prepare
from ralphloop.project import find_project
from ralphloop.trust import refuse_places


@click.command()
@click.argument("specs_dir", required=False, type=FILE)
@click.option("--prd", type=FILE, help="The story file.")
@click.option("--prompt", type=FILE, help="A plain loop: this prompt, no stories.")
@click.option("--continue", "resume", is_flag=True, help="Go on with the unfinished session.")
@click.option("--detach", is_flag=True, help="Run in the background; log in .ralph/ralph.log.")
@click.option("--monitor", is_flag=True, help="In tmux: the loop left, the monitor right.")
@setting_option("--calls", "limits.calls_per_hour", "Starts an hour; 0: no limit.", number)
@setting_option(
    "--lanes",
    "lanes.count",
    "Stories in parallel, each in its own work tree; 0: one by one, in your checkout.",
    number,
)
@setting_option(
    "--fleet", "fleet.server", "Other machines do the work: HOST:PORT of Temporal, or ssh:HOST,…"
)
@click.option(
    "--story", "only", metavar="ID", shell_complete=complete_story, help="Work on this story only."
)
@click.option(
    "--from",
    "queue",
    metavar="QUEUE",
    help="Take items of a queue: github:label=ralph, or a program; see `ralph docs queue`.",
)
@click.option("--watch", is_flag=True, help="Keep looking there, within the limits of the run.")
@click.option("--dry-run", is_flag=True, help="Print the plan and the first prompt; run nothing.")
@click.option("--probe", is_flag=True, help="One tiny paid start of each agent; say what it saw.")
@click.option(
    "--reset-circuit", "--cb-reset", "reset_circuit", is_flag=True, help="Close the circuit first."
)
@click.option("--cb-status", is_flag=True, help="Print the circuit's state and exit.")
@common_options
def run(
    cb_status: bool,
    dry_run: bool,
    probe: bool,
    monitor: bool,
    detach: bool,
    queue: str | None,
    watch: bool,
    **wanted: object,
) -> int:
    """Run the agent over the stories until the work is really done.

    Stories come from SPECS_DIR (prd.json, then tasks.yaml), --prd, or stories.prd in ralph.toml.
    """
    if cb_status:
        click.get_current_context().invoke(circuit.status, as_json=wanted["as_json"])
        return ExitCode.COMPLETE
    options = options_of(wanted, start=Path.cwd())
    if queue is not None or watch:
        others = {
            "--dry-run": dry_run,
            "--probe": probe,
            "--monitor": monitor,
            "--detach": detach,
            "--prompt": options.prompt,
            "--story": options.only,
        }
        besides = [name for name, given in others.items() if given]
        return run_queue(options, queue, watches=watch, besides=besides)
    if options.reset_circuit:
        refuse_agent(find_project(options.start), "reset_circuit")
    if dry_run:
        setup = prepare(options)
        refuse_places(setup.lacking())
        tell_of_no_git(setup)
        show_plan(setup)
        return ExitCode.COMPLETE
    if probe:
        return _probe(options)
    if monitor and detach:
        ways = "ralph run --detach, then ralph monitor"
        raise UsageError("--detach and --monitor do not go together", ways)
    if detach:
        return run_detached(options, sys.argv[1:])
    if monitor:
        ended = run_beside_monitor(options, sys.argv[1:])
        if ended is not None:
            return ended
    return run_here(options)


def _probe(options: Options) -> int:
    """Start each agent of the run once, for next to nothing, and say what was seen."""
    import asyncio

    from ralphloop.loop.confine import confine
    from ralphloop.loop.probing import probe

    setup = prepare(options)
    refuse_places(setup.lacking())
    setup = confine(setup)
    code = ExitCode.COMPLETE
    for worker in setup.workers:
        seen = asyncio.run(probe(setup, worker))
        output.emit_lines(output.row(worker.by, seen.words))
        if not (seen.answered and seen.wrote):
            code = ExitCode.AGENT_UNAVAILABLE
    return code
