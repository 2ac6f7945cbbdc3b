"""`ralph run`: the loop, in the foreground, detached, or only as a plan; `ralph do`: one story."""

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from ralphloop.atomic import write_atomic
from ralphloop.cli import elsewhere, output, steering
from ralphloop.cli.config import agree_to, trusted_setup
from ralphloop.cli.given import FILE, Command, dollars, duration, json_option, number
from ralphloop.config.load import load_config
from ralphloop.core.events import LoopEvent
from ralphloop.core.interventions import Reopened
from ralphloop.core.model import ExitDecision
from ralphloop.core.planning import choose
from ralphloop.core.run_state import Basis, Desk
from ralphloop.errors import ExitCode, UsageError
from ralphloop.loop.begin import brief, carried_for
from ralphloop.loop.commands import begin_command
from ralphloop.loop.open import EndedRun, after_run, run_session
from ralphloop.loop.prepare import Options, Setup, prepare, remarks_on
from ralphloop.night.look import Position, arranged, look
from ralphloop.night.values import next_steps
from ralphloop.project import ERRANDS, find_project, relative
from ralphloop.prompts import Prompt
from ralphloop.redaction import secret_values
from ralphloop.repo.private_git import make_directory
from ralphloop.stories.names import quoted
from ralphloop.text.command_line import NO_SHELL, word_for_a_shell
from ralphloop.text.plain import one_line
from ralphloop.trust import refuse_places

_LONGEST_TITLE = 72
_MOST_WORDS = 100_000


def _sets(flag: str, setting: str, words: str, kind: Any = str) -> Callable[[Command], Command]:
    return click.option(flag, setting.replace(".", "__"), type=kind, help=words)


_AGENTS = "Which agent: claude, codex, gemini, opencode, command, scripted."
_COMMON = (
    _sets("--max-iterations", "limits.max_iterations", "At most so many; 0: no limit.", number),
    _sets("--max-cost", "limits.max_cost_usd", "Dollars; 0: no limit.", dollars),
    _sets("--max-tokens", "limits.max_tokens", "Without cache reads; 0: no limit.", number),
    _sets("--max-time", "limits.max_time", "Wall clock, e.g. 8h; 0: no limit.", duration),
    click.option("--until", "limits__until", metavar="HH:MM", help="End at that time, e.g. 07:00."),
    _sets("--agent", "agent.name", _AGENTS),
    _sets("--model", "agent.model", "Which model the agent should use."),
    click.option("--allow-dirty", is_flag=True, help="Start with uncommitted changes."),
    click.option("--allow-red", is_flag=True, help="Start although a check fails already."),
    click.option("--no-wait", is_flag=True, help="End instead of waiting for a limit to reset."),
    click.option("--trust", "trusted", is_flag=True, help="A yes to what ralph.toml may run here."),
    click.option("--trust-pin", metavar="HASH", help="The same for exactly these: --trust=HASH."),
    click.option("-v", "--verbose", count=True, help="Also show every step of the agent."),
    click.option("-q", "--quiet", is_flag=True, help="Only results."),
    json_option("One event a line."),
)


def common_options(command: Command) -> Command:
    """What every command that runs an agent over stories can be told."""
    for option in reversed(_COMMON):
        command = option(command)
    return command


@click.command()
@click.argument("specs_dir", required=False, type=FILE)
@click.option("--prd", type=FILE, help="The story file.")
@click.option("--prompt", type=FILE, help="A plain loop: this prompt, no stories.")
@click.option("--continue", "resume", is_flag=True, help="Go on with the unfinished session.")
@click.option("--detach", is_flag=True, help="Run in the background; log in .ralph/ralph.log.")
@click.option("--monitor", is_flag=True, help="In tmux: the loop left, the monitor right.")
@_sets("--calls", "limits.calls_per_hour", "Starts an hour; 0: no limit.", number)
@_sets("--lanes", "lanes.count", "So many stories at once, beside the checkout; 0: in it.", number)
@click.option("--story", "only", metavar="ID", help="Work on this story only.")
@click.option("--dry-run", is_flag=True, help="Print the plan and the first prompt; run nothing.")
@click.option(
    "--reset-circuit", "--cb-reset", "reset_circuit", is_flag=True, help="Close the circuit first."
)
@click.option("--cb-status", is_flag=True, help="Print the circuit's state and exit.")
@common_options
def run(cb_status: bool, dry_run: bool, monitor: bool, detach: bool, **wanted: object) -> int:
    """Run the agent over the stories until the work is really done.

    Stories come from SPECS_DIR (prd.json, then tasks.yaml), --prd, or stories.prd in ralph.toml.
    """
    if cb_status:
        click.get_current_context().invoke(steering.status, as_json=wanted["as_json"])
        return ExitCode.COMPLETE
    options = options_of(wanted, start=Path.cwd())
    if options.reset_circuit:
        steering.refuse_agent(find_project(options.start), "reset_circuit")
    if not dry_run and (monitor or detach):
        if monitor and detach:
            ways = "ralph run --detach, then ralph monitor"
            raise UsageError("--detach and --monitor do not go together", ways)
        ended = (elsewhere.detach if detach else elsewhere.open_monitor)(options, sys.argv[1:])
        if ended is not None:
            return ended
    if dry_run:
        setup = prepare(options)
        refuse_places(setup.lacking())
        show_plan(setup)
        return ExitCode.COMPLETE
    return run_here(options)


def run_here(options: Options) -> int:
    """Run in the foreground, after a person's yes."""
    import asyncio

    from ralphloop.cli.clean import tidy
    from ralphloop.ui.report import write_report

    if options.quiet and options.verbose:
        raise UsageError("-q and -v ask for the opposite", "Leave one of them out.")
    setup = trusted_setup(options)
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


def options_of(wanted: Mapping[str, object], *, start: Path, session: str = "") -> Options:
    """What was asked for; a session asks with fewer of these words."""
    if wanted.get("prompt") and any(map(wanted.get, ("prd", "specs_dir", "only"))):
        raise UsageError("--prompt runs without stories", "Leave out --prd, --story and SPECS_DIR.")
    settings = {name.replace("__", "."): it for name, it in wanted.items() if "__" in name}
    given = {name: value for name, value in wanted.items() if name in Options.__struct_fields__}
    return msgspec.convert(
        {
            **given,
            "start": start,
            "session": session,
            "wait": not wanted.get("no_wait"),
            "trust": wanted.get("trust_pin") or ("1" if wanted.get("trusted") else ""),
            "flags": {name: value for name, value in settings.items() if value is not None},
        },
        Options,
    )


def show_plan(setup: Setup) -> None:
    """Print stories in order and why, the checks, and the first prompt; do nothing."""
    night = look(setup.project)
    resume = setup.options.resume
    session = night.session
    ended = night.run.decision if night.run else ""
    session.frozen = Basis(checks=setup.config.checks.commands)
    stories = setup.stories.list if setup.stories else None
    listed = arranged(stories, session.stories) if stories else ()
    steps = [placed for placed in listed if not placed.look.story.passes]
    # What waits is tried again, as by the run to come; a new one knows no notes.
    if not resume or ended in (ExitDecision.BLOCKED, ExitDecision.TEST_SATURATION):
        session.state = Reopened(waiting_only=resume).applied(session.state, setup.policy)
    session.desk = session.desk if resume else Desk()
    story = choose(stories, session.stories, only=setup.options.only) if stories else None
    prompt = None
    if story or stories is None:
        learned = carried_for(setup, setup.project, story, setup.workers[0]).text
        prompt = brief(setup, setup.site, session, story, stories, learned=learned)
    # Where commits would land, and how a run would come there.
    branch, how = (setup.repo.branch() or "", "already") if setup.repo else ("", "")
    if setup.repo and stories and stories.branch_name:
        branch = stories.branch_name
        how = setup.repo.way_to(stories.branch_name)[0]
    data = {
        "project": str(setup.project.root),
        "branch": branch or None,
        "branch_is": how or None,
        "agent": setup.config.agent.name,
        "checks": setup.config.checks.commands,
        "stories": [
            {
                **output.picked(step.look.story, "id", "title"),
                "runs": step.position is not None,
                "reason": step.why,
            }
            for step in steps
        ],
        "remarks": remarks_on(setup),
        "prompt_tokens": prompt.estimated_tokens if prompt else 0,
        "prompt": prompt.text if prompt else None,
    }
    lines = _plan_lines(setup, branch, how, steps, prompt)
    output.show(lines, data, as_json=setup.options.as_json)


def _plan_lines(
    setup: Setup, branch: str, how: str, steps: list[Position], prompt: Prompt | None
) -> Iterator[str]:
    yield f"project  {setup.project.root}"
    if branch:
        words = {"created": " (it would be made)", "switched": " (it would be switched to)"}
        yield output.safe(f"branch   {branch}{words.get(how, '')}")
    yield f"agent    {setup.config.agent.name} {setup.config.agent.models}".rstrip()
    checks = " · ".join(shlex.join(argv) for argv in setup.config.checks.commands)
    yield f"checks   {checks or 'none: stories can only be claimed'}"
    if steps:
        yield "stories"
    for step in steps:
        mark = f"{step.position:>3}." if step.position else "  - "
        yield f"  {mark} {output.safe(step.look.story.id)}: {output.safe(step.look.story.title)}"
        yield f"       {output.safe(step.why)}"
    for remark in remarks_on(setup):
        yield output.safe(f"  ! {remark}")
    if prompt is None:
        yield "Nothing can run; see ralph stories."
        return
    yield f"first prompt: about {prompt.estimated_tokens:,} tokens"
    for part in prompt.left_out:
        yield f"  left out: {part}"
    yield ""
    yield output.safe(prompt.text)


async def _foreground(setup: Setup) -> tuple[EndedRun, ExitCode]:
    from ralphloop.lanes import opening
    from ralphloop.loop.signals import kept_awake, signals_to
    from ralphloop.notify.notifier import Notifier
    from ralphloop.proc.threads import StopSignal
    from ralphloop.ui.console import LiveConsole, PlainConsole

    stop = StopSignal()
    options = setup.options
    as_json = setup.options.as_json
    capable = sys.stdout.isatty() and options.env.get("TERM", "") not in ("", "dumb")
    console = LiveConsole if capable and not as_json else PlainConsole
    screen = console(verbosity=-1 if options.quiet else options.verbose)
    secrets = secret_values(options.env)
    begin = partial(begin_command, setup)
    notifier = Notifier(setup.config.notify, cwd=setup.project.root, secrets=secrets, begin=begin)

    def sink(event: LoopEvent) -> None:
        notifier.on_event(event)
        if as_json:
            try:
                output.emit_json(event.as_line(), indent=None)
                sys.stdout.flush()
            except OSError:
                output.silence(sys.stdout)  # whoever was reading is gone; the run goes on
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
        in_lanes = opening.wanted(setup)
        if in_lanes and (setup.config.lanes.count or setup.options.resume):
            ended = await opening.run_in_lanes(
                setup, stop=stop, sink=sink, tell=output.note, asks=asks
            )
        else:
            if in_lanes:
                await opening.settle_lanes(setup, stop=stop, sink=sink, tell=output.note)
            opening.insist_on_what_landed(setup)
            ended = await run_session(setup, stop=stop, sink=sink, tell=output.note, asks=asks)
    for problem in notifier.close():
        output.warn(problem)
    code = ExitCode(ended.told.exit_code)
    return ended, codes[0] if codes and code is ExitCode.INTERRUPTED else code


#
# It lies in a file of its own below `.ralph/do`, so that a run of it is like any other; the
# project's story list, and a night that could be continued, are left alone.


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--verify", metavar="COMMAND", help="Red now, green when it is done; no shell.")
@click.option("--checks", is_flag=True, help="Only the checks of ralph.toml prove it (default).")
@common_options
def do(words: tuple[str, ...], verify: str | None, checks: bool, **wanted: object) -> int:
    """Have one thing done, without a story file.

    \b
    ralph do "make the parser accept tabs" --verify "pytest -q tests/test_parser.py"

    WORDS say what is to be done; - reads them from standard input.  It ends when COMMAND, which is
    run before and after, and the checks of ralph.toml are green, or says why not.  What was
    interrupted goes on with: ralph run --continue
    """
    if verify is not None and checks:
        raise UsageError("--verify and --checks both say what proves it", "Leave one of them out.")
    text = (sys.stdin.read(_MOST_WORDS) if words == ("-",) else " ".join(words)).strip()
    if not text:
        raise UsageError("say what is to be done", 'ralph do "make the parser accept tabs"')
    try:
        argv = shlex.split(verify or "")
    except ValueError as error:
        raise UsageError(f"--verify: {error}", 'Quote it once more: --verify "pytest -q"') from None
    if word := word_for_a_shell(verify or ""):
        step = """If you want one: --verify "sh -c '…'\""""
        raise UsageError(f"--verify uses {quoted(word)}: {NO_SHELL}", step)
    if verify is not None and not argv:
        raise UsageError("--verify names no command", '--verify "pytest -q tests/test_parser.py"')
    project = find_project()
    if not argv and not load_config(project.root, env=os.environ).config.checks.commands:
        raise UsageError(
            "nothing here could tell whether it is done",
            'Name a command that fails now: --verify "pytest -q tests/test_parser.py",'
            " or have checks found: ralph init",
        )
    # The same file for the same words.
    text = text[:_MOST_WORDS]
    digest = hashlib.sha256("\0".join([text, *argv]).encode()).hexdigest()
    name = f"DO-{digest[:6]}"
    title = one_line(text.splitlines()[0], _LONGEST_TITLE)
    story = {
        "id": name,
        "title": title,
        "description": text if text != title else "",
        "acceptanceCriteria": [f"`{shlex.join(argv)}` succeeds"] if argv else [],
        **({"verify": argv} if argv else {}),
        "passes": False,
    }
    path = project.root / ERRANDS / f"{name}.json"
    data = msgspec.json.format(msgspec.json.encode({"userStories": [story]}))
    make_directory(project.directory)
    write_atomic(path, data + b"\n", within=project.directory, parents=True)
    agree_to(project, path, relative(path, project.root))
    return run_here(options_of({**wanted, "prd": path}, start=Path.cwd()))
