"""A run in this terminal: console or JSON, messages, signals, and what follows its end."""

import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ralphloop.cli import output
from ralphloop.cli.shared.agreement import trusted_setup
from ralphloop.config.addresses import address_secrets
from ralphloop.core.events import LoopEvent
from ralphloop.errors import NOTHING_RAN, START_ONE, ExitCode, UsageError
from ralphloop.loop.commands import begin_command
from ralphloop.loop.open import EndedRun, after_run, run_session
from ralphloop.loop.prepare import Options, Setup
from ralphloop.night.look import has_run, has_unfinished_run, look
from ralphloop.night.values import next_steps
from ralphloop.redaction import secret_values

if TYPE_CHECKING:
    from ralphloop.notify.notifier import Notifier
    from ralphloop.ui.console import PlainConsole


def run_here(options: Options) -> int:
    """Run in the foreground, after a person's yes."""
    import asyncio

    from ralphloop.cli.shared.leftovers import tidy
    from ralphloop.ui.report import write_report

    if options.quiet and options.verbose:
        raise UsageError("-q and -v ask for the opposite", "Leave one of them out.")
    setup = trusted_setup(options)
    insist_on_run_to_continue(setup)
    tell_of_no_git(setup)
    ended, code = asyncio.run(_foreground(setup))
    # The report, the `on_end` command, what old runs left, and what to do next.
    reports = write_report(setup.project, ended.run)
    tidy(setup.project)
    if said := after_run(setup, ended):
        output.note(said)
    if not options.as_json:
        for report in reports[:1]:
            output.note(f"report: {report}")
        for step in next_steps(look(setup.project, run=ended.run)):
            output.note(f"next: {step}")
    return code


def insist_on_run_to_continue(setup: Setup) -> None:
    """End here where `--continue` was asked for and no run is unfinished: a night is not spent."""
    if not setup.options.resume:
        return
    project = setup.project
    if not has_run(project):
        raise UsageError(f"there is no run to continue: {NOTHING_RAN}", START_ONE)
    if not has_unfinished_run(project):
        raise UsageError("nothing to continue: the run finished", "`ralph run` begins a new one.")


def tell_of_no_git(setup: Setup) -> None:
    """Say it before anything else can fail: much of what ralph does needs it."""
    if setup.repo is None:
        output.warn(
            "no git repository here: nothing is committed and less can be verified. First: git init"
        )


class _Ended(NamedTuple):
    run: EndedRun
    code: ExitCode


async def _foreground(setup: Setup) -> _Ended:
    from ralphloop.lanes import run_in_lanes as lane_run
    from ralphloop.lanes.clean_tree import clean_tree_of
    from ralphloop.loop.signals import kept_awake, signals_to
    from ralphloop.proc.threads import StopSignal

    stop = StopSignal()
    screen = _console(setup.options)
    notifier = _notifier(setup)

    def sink(event: LoopEvent) -> None:
        notifier.on_event(event)
        if setup.options.as_json:
            _emit_event(event)
        else:
            screen.show(event)

    def asks(question: str, over: Callable[[], bool]) -> bool:
        """A person's yes, where one can see the question and type an answer."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        with screen.suspended():
            return output.answers_yes(question, over)

    with (
        closing(notifier),
        closing(screen),
        signals_to(stop, setup.project.log, output.note) as codes,
        kept_awake(wanted=setup.config.session.keep_awake),
    ):
        # In lanes where that is asked for or goes on, else in the checkout.
        in_lanes = lane_run.wanted(setup)
        if server := lane_run.fleet_of(setup):
            from ralphloop.fleet.run_in_fleet import run_in_fleet

            ended = await run_in_fleet(
                setup, server, stop=stop, sink=sink, tell=output.note, asks=asks
            )
        elif in_lanes and (setup.config.lanes.count or setup.options.resume):
            ended = await lane_run.run_in_lanes(
                setup, stop=stop, sink=sink, tell=output.note, asks=asks
            )
        else:
            if in_lanes:
                await lane_run.settle_lanes(setup, stop=stop, sink=sink, tell=output.note)
            lane_run.insist_on_what_landed(setup)
            ended = await run_session(
                setup,
                stop=stop,
                sink=sink,
                tell=output.note,
                asks=asks,
                clean_tree=clean_tree_of,
            )
    for problem in notifier.close():
        output.warn(problem)
    code = ExitCode(ended.told.exit_code)
    if codes and code is ExitCode.INTERRUPTED:
        code = codes[0]
    return _Ended(ended, code)


def _console(options: Options) -> "PlainConsole":
    """The screen of a run: it moves where the terminal can, else it is line after line."""
    from ralphloop.ui.console import LiveConsole, PlainConsole

    is_capable = sys.stdout.isatty() and options.env.get("TERM", "") not in ("", "dumb")
    console = LiveConsole if is_capable and not options.as_json else PlainConsole
    return console(verbosity=-1 if options.quiet else options.verbose)


def _notifier(setup: Setup) -> "Notifier":
    """Who sends messages; what has to be installed for that is said now."""
    from ralphloop.notify.notifier import Notifier, not_installed
    from ralphloop.ui.page.links import page_address

    notify = setup.config.notify
    if problem := not_installed(notify):
        output.warn(problem)
    secrets = [*secret_values(setup.options.env)]
    for address in (*notify.urls, notify.webhook):
        secrets += address_secrets(address)
    root = setup.project.root
    begin = partial(begin_command, setup)
    page_of = partial(page_address, root, setup.options.env)
    return Notifier(notify, cwd=root, secrets=secrets, begin=begin, page_of=page_of)


def _emit_event(event: LoopEvent) -> None:
    try:
        output.emit_json(event.as_line(), indent=None)
        sys.stdout.flush()
    except OSError:
        output.silence(sys.stdout)  # whoever was reading is gone; the run goes on
