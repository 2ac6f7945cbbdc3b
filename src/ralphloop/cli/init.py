"""`ralph init`: look at the repository, write what a run needs, and say what to do next.

Everything is found out and validated before the first file is written, and what exists is only
replaced by an explicit yes.  Checks are run once before they are written; that runs what the
repository says, so it needs a yes as well.  The templates are ours, the values come from the
repository: the sandbox keeps a project's description from being anything but text.
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import click
import msgspec

from ralphloop.agents.base import AGENTS, load_agent
from ralphloop.agents.declared import declared_names
from ralphloop.agents.environment import find_program
from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.cli.story_list import SCHEMA_NAME, schema_text
from ralphloop.config.load import DEFAULT, check_config, user_file
from ralphloop.config.model import AgentName, Config
from ralphloop.config.values import toml_value
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.story import StoryList
from ralphloop.errors import ExitCode, InputError, RepositoryError, UsageError
from ralphloop.night.look import story_file
from ralphloop.project import CONFIG_NAME, Project, agent_directories
from ralphloop.prompts import DEFAULT_INSTRUCTIONS, STATUS_SECTION
from ralphloop.repo.checks import (
    cannot_start,
    check_of,
    last_lines,
    not_installed,
    run_checks,
    why_red,
)
from ralphloop.repo.work_tree import Repository
from ralphloop.room import read_regular
from ralphloop.stacks.detect import Detected, detect
from ralphloop.stories.source import load
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted
from ralphloop.trust import agree, grants_of

Argv = tuple[str, ...]

COST_CAP_USD = 20.0
_TRIED_S = 60.0  # for all checks together, in the sandbox
_UNTRIED = "", 'not used: nothing was run to try it; [sandbox] mode = "auto" switches it on'
_row = partial(output.row, width=10)
_GITIGNORE = ".gitignore"
_PROMPT = "PROMPT.md"
_IGNORED = (".ralph/", ".ralph-session.json", ".ralph-circuit-state.json")
_DOCUMENTS = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "README.md")
_PLACEHOLDERS: dict[str, tuple[str, ...]] = {  # of those without a program of their own
    AgentName.COMMAND: ("./my-agent",),
    AgentName.SCRIPTED: ("night.yaml",),
}
_LOOKED_FOR = (AgentName.CLAUDE, AgentName.CODEX, AgentName.GEMINI, AgentName.OPENCODE)


@dataclass(frozen=True)
class Planned:
    path: Path
    data: bytes
    remark: str = ""
    replaceable: bool = True  # by --overwrite
    grows: bool = False  # only ever extended

    def fate(self) -> str:
        try:
            before = read_regular(self.path)
        except FileNotFoundError:
            return "created"
        except OSError:
            return "replaced"  # whatever it is, it is not ours
        if before == self.data:
            return "same"
        return "extended" if self.grows else "replaced"


@dataclass(frozen=True)
class Stories:
    name: str  # from the project's directory
    there: StoryList | None = None  # None: the file is still to be written
    copied: bytes | None = None  # from a file outside

    @property
    def is_sample(self) -> bool:
        return self.there is None and self.copied is None


@click.command()
@click.option(
    "--prd",
    type=click.Path(path_type=Path),
    help="Your story file; one outside this directory is copied.",
)
@click.option(
    "--agent", metavar="NAME", help="claude, codex, gemini, opencode, command or scripted."
)
@click.option(
    "--yes", is_flag=True, help="Run the checks and create without asking; what exists stays."
)
@click.option("--overwrite", is_flag=True, help="Replace ralph.toml and PROMPT.md if they exist.")
@click.option("--no-run", is_flag=True, help="Write the checks without running them once.")
def init(prd: Path | None, agent: str | None, yes: bool, overwrite: bool, no_run: bool) -> int:
    """Set up this directory: ralph.toml, PROMPT.md, a story list, .gitignore.

    The stack and the commands that prove its work are detected from the files here. Each command is
    run once before it is written.
    """
    root, own = Path.cwd(), user_file(os.environ)
    stories = _given_stories(root, prd) if prd is not None else _find_stories(root)
    detected = detect(root, directories=(own.parent / "stacks",) if own else ())
    name = _choose_agent(root, agent)
    keys, why_capped = _paid_by_use(root, name, os.environ)
    output.emit_lines(_found(root, detected, name, why_capped))
    asking = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    is_new = overwrite or not (root / CONFIG_NAME).exists()
    trying = (yes or asking) and is_new and not no_run and bool(detected.checks)
    words = ", running these checks once" if trying else ""
    if asking and not click.confirm(f"Set up ralph in {root}{words}?", default=True, err=True):
        output.emit_lines(["Nothing was written."])
        return ExitCode.COMPLETE
    if trying:
        detected = msgspec.structs.replace(detected, checks=tuple(_tried(root, detected.checks)))
    boxed = ""
    if is_new:
        boxed, words = _tried_sandbox(root, detected) if trying or not detected.checks else _UNTRIED
        output.emit_lines(_row("sandbox", words))
    cap = COST_CAP_USD if why_capped else 0.0
    planned = _planned(root, detected, stories, name, keys, cap, boxed)
    written = [each for each in planned if _settle(root, each, asking=asking, overwrite=overwrite)]
    names = [str(each.path.relative_to(root)) for each in written]
    if listed := stories.there:
        words = f"{stories.name}: {counted(listed.total, 'story')}, {listed.passed} passed"
        sample = "; these are still the sample, not yours" * (listed.get("SAMPLE-1") is not None)
        output.emit_lines(_row("kept", words + sample))
    if CONFIG_NAME in names and (yes or asking):
        _agree(root, root / stories.name if stories.is_sample and stories.name in names else None)
    output.emit_lines(_doubts(root, stories, names))
    output.emit_lines(_next_steps(root, stories, name, names))
    return ExitCode.COMPLETE


def _tried(root: Path, checks: Sequence[Argv]) -> Iterator[Argv]:
    """Run each check once; those that can start are worth writing."""
    timeout = check_config(root, env=os.environ)[0].config.checks.timeout
    for argv in checks:
        command = shlex.join(argv)
        trouble = cannot_start(argv, found=find_program(argv[0], os.environ, root) is not None)
        result: CheckResult | None = None
        if trouble is None:
            output.note(f"running {command} (Ctrl+C ends it; `ralph init --no-run` skips this)")
            (result,) = run_checks([check_of(argv, timeout)], root)
            trouble = why_red(argv, result.output_tail) if result.status == "failed" else None
        if trouble is None and result is not None:
            output.emit_lines(_came_out(command, result))
            output.flush()
            yield argv
        elif trouble is not None:
            output.emit_lines(_row("left out", f"{command}: {trouble.words}", "yellow"))
            output.emit_lines(_row("", f"fix: {trouble.fix.partition(', or take')[0]}"))
    output.emit_lines([""])


def _came_out(command: str, result: CheckResult) -> Iterator[str]:
    """How a check stands now, with the end of what it said if it is red."""
    took, numbers = format_duration(result.duration_s), result.counts
    passed = f", {counted(numbers.passed, 'test')} passed" if numbers and numbers.passed else ""
    failed = f", {counted(numbers.failed, 'test')} failed" if numbers and numbers.failed else ""
    if result.status is CheckStatus.FAILED:
        yield from _row("red", f"{command}, after {took}{failed}", "red")
        yield from (f"{'':12}{output.safe(line)}" for line in last_lines(result.output_tail))
        yield from _row("", "It is written all the same: make it green before a run.")
    else:
        nothing = ", but there is no test yet" * (result.status is CheckStatus.NO_TESTS)
        yield from _row("green", f"{command}, in {took}{passed}{nothing}", "green")


def _agree(root: Path, sample: Path | None) -> None:
    """What was shown, agreed to and written may be run, our sample too: nobody is asked again."""
    loaded, problems = check_config(root, env=os.environ)
    if not problems:
        grants = grants_of(loaded, root, load(sample).list.stories if sample else (), sample)
        ours = {CONFIG_NAME, sample.name if sample else ""}
        own = [grant for grant in grants if grant.origin in ours]
        with suppress(RepositoryError):  # no place to remember it in: then a run asks
            agree(root, os.environ, own)


def _find_stories(root: Path) -> Stories:
    """The story file that is there already, validated; else the sample to be written."""
    config = check_config(root, env=os.environ)[0].config
    try:
        path = story_file(Project(root), None, config)
    except InputError:
        return Stories("prd.json")
    named = config.stories.prd
    return Stories(named if path == root / named else path.name, load(path).list)


def _given_stories(root: Path, given: Path) -> Stories:
    listed = load(given).list
    path = root / given
    if ".." not in given.parts and path.is_relative_to(root):
        return Stories(path.relative_to(root).as_posix(), listed)
    name = "prd.json" if listed.kind == "prd" else "tasks.yaml"
    return Stories(name, copied=given.read_bytes())


def _choose_agent(root: Path, wanted: str | None) -> str:
    """The agent asked for, else the one settings name, else the first that is installed."""
    if wanted is not None:
        known = {*AGENTS, *declared_names(agent_directories(root))}
        if wanted not in known:
            listed = ", ".join(sorted(known))
            raise UsageError(f"--agent: there is no agent {wanted[:40]!r}", f"One of: {listed}.")
        return wanted
    loaded, _ = check_config(root, env=os.environ)
    if loaded.origins["agent.name"] != DEFAULT:
        return str(loaded.config.agent.name)
    installed = (name for name in _LOOKED_FOR if find_program(name, os.environ, root))
    return str(next(installed, AgentName.CLAUDE))


def _paid_by_use(root: Path, agent: str, env: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The keys that are set for it; and where every token has its price, why we think so."""
    known = load_agent(agent, directories=agent_directories(root)).keys
    keys = tuple(sorted(name for name in known if env.get(name)))
    if keys:
        return keys, f"{' and '.join(keys)} {'is' if len(keys) == 1 else 'are'} set"
    # It has no subscription of its own.
    return keys, f"{agent} is paid by use" if agent == AgentName.OPENCODE else ""


def _planned(
    root: Path,
    detected: Detected,
    stories: Stories,
    agent: str,
    keys: tuple[str, ...],
    max_cost_usd: float,
    boxed: str,
) -> list[Planned]:
    """Everything that would be written, in order."""
    render = _renderer()
    config = render(
        CONFIG_NAME,
        agent=agent,
        command=_PLACEHOLDERS.get(agent, ()),
        keys=keys,
        checks=detected.checks,
        max_cost_usd=max_cost_usd,
        boxed=boxed,
        prd=stories.name,
    )
    documents = tuple(name for name in _DOCUMENTS if (root / name).is_file())
    prompt = render(_PROMPT, project=detected, documents=documents)
    planned = [Planned(root / CONFIG_NAME, config), Planned(root / _PROMPT, prompt)]
    if stories.copied is not None:
        planned += [Planned(root / stories.name, stories.copied, " (a copy)")]
    elif stories.there is None:
        sample, remark = render("prd.json", project=detected), " (a sample with two stories)"
        planned += [Planned(root / stories.name, sample, remark, replaceable=False)]
    if stories.is_sample or (root / SCHEMA_NAME).exists():
        remark = f" (editors complete and check {stories.name} with it)"
        planned += [Planned(root / SCHEMA_NAME, schema_text().encode(), remark)]
    ignored = ignoring(_read(root / _GITIGNORE))
    return [*planned, Planned(root / _GITIGNORE, ignored, grows=True)]


def _tried_sandbox(root: Path, detected: Detected) -> tuple[str, str]:
    """The mode that works here, empty for none, and why: the checks are run inside, once."""
    from ralphloop.loop.confine import NoSandbox, check_box, tried
    from ralphloop.loop.prepare import open_repository

    try:
        box = check_box(Config(), Project(root), open_repository(root), os.environ)
        reason, fix = tried(box, root)
    except NoSandbox as error:
        reason, fix = error.message, error.next_step
    except RepositoryError as error:
        reason, fix = error.message, ""
    if reason:
        return "", f"none works here: {reason}{f' ({fix})' if fix else ''}"
    until = time.monotonic() + _TRIED_S
    checks = [check_of(argv, _TRIED_S, box) for argv in detected.checks]
    results = run_checks(checks, root, stop=lambda: time.monotonic() >= until)
    red = [it.name for it in results if it.status is CheckStatus.FAILED]
    if red or len(results) < len(checks):
        which = red[0] if red else checks[len(results)].name
        return "", f'not used: {which} is not green inside; try [sandbox] mode = "auto" later'
    proven = ", and the checks are green inside" if checks else ""
    return "auto", f"the agent, the checks and git's hooks are confined{proven}"


def ignoring(before: bytes) -> bytes:
    """A .gitignore with our own files in it; everything that was there stays as it is."""
    known = {line.strip().strip(b"/") for line in before.splitlines()}
    missing = [name for name in _IGNORED if name.strip("/").encode() not in known]
    if not missing:
        return before
    end = b"\r\n" if b"\r\n" in before else b"\n"
    gap = end if before and not before.endswith((b"\n", b"\r")) else b""
    return before + gap + b"".join(name.encode() + end for name in missing)


def _read(path: Path) -> bytes:
    try:
        return read_regular(path)
    except FileNotFoundError:
        return b""
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise InputError(reason, f"Look at {path}.", place=path.name) from None


def _renderer() -> Callable[..., bytes]:
    """Renders one of the files; its template says which values it needs."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        autoescape=False,  # the results are Markdown, TOML and JSON, never HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"toml": toml_value, "json": json.dumps, "command": shlex.join}
    environment.globals |= {
        "instructions": DEFAULT_INSTRUCTIONS.replace("# How to work", "## Task instructions", 1),
        "status_section": STATUS_SECTION,
    }

    def render(name: str, **values: object) -> bytes:
        template = files("ralphloop.prompts") / "templates" / f"{name}.j2"
        return environment.from_string(template.read_text("utf-8")).render(**values).encode()

    return render


def _found(root: Path, detected: Detected, agent: str, why_capped: str) -> Iterator[str]:
    def missing(program: str) -> bool:
        return find_program(program, os.environ, root) is None

    tools = f" ({', '.join(detected.tools)})" if detected.tools else ""
    yield from _row("stack", f"{detected.title}{tools}")
    for number, argv in enumerate(detected.checks):
        lacks = not_installed(argv, root)
        words = f" ({lacks.words})" if lacks else ""
        words = f" ({argv[0]} is not on PATH yet)" if missing(argv[0]) else words
        yield from _row("" if number else "checks", f"{shlex.join(argv)}{words}")
    if not detected.checks:
        words = "none found: until ralph.toml names some, stories can only be `claimed`"
        yield from _row("checks", words)
    absent = agent not in _PLACEHOLDERS and missing(agent)
    yield from _row("agent", f"{agent}{', which is not on PATH yet' if absent else ''}")
    if why_capped:
        words = f"${COST_CAP_USD:.0f} a session (max_cost_usd), because {why_capped}"
        yield from _row("limit", words)
    for hint in (*detected.hints, *_place(root)):
        yield from _row("note", hint)
    yield ""


def _place(root: Path) -> Iterator[str]:
    try:
        top = Repository.open(root).root
    except RepositoryError as error:
        yield f"{error.message}; without git, less can be verified"
        return
    if top.resolve() != root.resolve():
        yield f"this is a part of the repository at {top}; ralph will work on this part"


def _settle(root: Path, file: Planned, *, asking: bool, overwrite: bool) -> bool:
    """Write one file unless that would take something away unasked; False: left alone."""
    fate, name = file.fate(), file.path.relative_to(root)
    if fate == "replaced" and not (overwrite and file.replaceable):
        question = f"{name} exists. Replace it?"
        if not (asking and click.confirm(question, default=False, err=True)):
            hint = " (--overwrite replaces it)" if file.replaceable else ""
            output.emit_lines(_row("kept", f"{name}: it exists{hint}"))
            return False
    if fate == "same":
        output.emit_lines(_row("kept", f"{name}: it is up to date"))
        return False
    # In one step, and never through a link that leads out of the project.
    write_atomic(file.path, file.data, within=root)
    output.emit_lines(_row(fate, f"{name}{file.remark}"))
    return True


def _doubts(root: Path, stories: Stories, written: list[str]) -> Iterator[str]:
    """What a file that was left alone may need."""
    loaded, problems = check_config(root, env=os.environ)
    for problem in problems[:1]:
        yield from _row("note", f"{problem.place}: {problem.message} (ralph config validate)")
    if not problems and CONFIG_NAME not in written and loaded.config.stories.prd != stories.name:
        words = f'{CONFIG_NAME} names other stories; for these: stories.prd = "{stories.name}"'
        yield from _row("note", words)


def _next_steps(root: Path, stories: Stories, agent: str, written: list[str]) -> Iterator[str]:
    steps = []
    if agent in _PLACEHOLDERS and CONFIG_NAME in written:
        steps.append(f"name your program in {CONFIG_NAME}: agent.command")
    if stories.is_sample:
        steps.append(f'ralph stories add "…"  replaces the sample; or edit {stories.name}')
    try:
        Repository.open(root)
    except RepositoryError:
        steps.append("git init              (ralph commits each story that passes)")
        written = [*dict.fromkeys([*written, _GITIGNORE])]
    if written:
        steps.append(f"git add {shlex.join(written)}\n     git commit -m 'Set up ralph'")
    steps += ["ralph run --dry-run   shows the plan and first prompt, spends nothing"]
    steps += ["ralph run             runs it"]
    yield from ("", "Next:", *(f"  {number}. {step}" for number, step in enumerate(steps, 1)))
