"""`ralph init`: look at the repository, write what a run needs, and say what to do next.

All is found out and validated before the first file is written, and what exists is only replaced by
an explicit yes.  Checks are run once before they are written, which runs what the repository says
and needs a yes as well.  The templates' sandbox keeps a project's description mere text.
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from ralphloop.agents.base import load_agent
from ralphloop.agents.declared import Declaration, DeclaredAgent, shipped_declarations
from ralphloop.agents.environment import find_program
from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.cli.shared.agreement import agree_to
from ralphloop.cli.shared.options import FILE, complete_agent
from ralphloop.cli.shared.story_schema import SCHEMA_NAME, schema_text
from ralphloop.config.known_agents import known_agents, shipped_agents
from ralphloop.config.load import DEFAULT, LoadedConfig, check_config, user_file
from ralphloop.config.model import AgentSection, Config
from ralphloop.config.values import toml_value
from ralphloop.core.model import CheckStatus, StoryList
from ralphloop.errors import InputError, RalphError, RepositoryError, UsageError, unreadable
from ralphloop.loop.confine import working_box
from ralphloop.loop.prepare import open_repository
from ralphloop.night.look import story_file
from ralphloop.plan.outlook import try_once
from ralphloop.proc.sandbox import in_words, refused_paths
from ralphloop.project import CONFIG_NAME, Project, agent_directories, git_directory
from ralphloop.prompts import DEFAULT_INSTRUCTIONS, STATUS_SECTION
from ralphloop.repo.checks import check_of, last_lines, not_installed, run_checks
from ralphloop.repo.work_tree import Repository, project_prefix
from ralphloop.room import read_regular
from ralphloop.stacks.detect import Detection, detect
from ralphloop.stacks.lane_setup import LOCKS, lane_recipe, recipe_lines
from ralphloop.stories.shapes import YAML_SUFFIXES
from ralphloop.stories.source import list_of_another_tool, load
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted

Argv = tuple[str, ...]

COST_CAP_USD = 20.0
_TRIED_S = 60.0  # for all checks together, in the sandbox
_row = partial(output.row, width=10)
_GITIGNORE = ".gitignore"
_PROMPT = "PROMPT.md"
_IGNORED = (".ralph/", ".ralph-session.json", ".ralph-circuit-state.json")
_DOCUMENTS = ("AGENTS.md", "CLAUDE.md", "CONTRIBUTING.md", "README.md")
_PLACEHOLDERS = {"command": ("./my-agent",), "scripted": ("night.yaml",)}  # they have no program


class NewFile(NamedTuple):
    name: str  # from the project's directory
    data: bytes
    remark: str = ""
    replaceable: bool = True  # by --overwrite


class ChosenAgent(NamedTuple):
    """The agent of the new settings."""

    name: str
    program: str  # that starts it; empty where the settings name one
    keys: Argv  # API keys that are set for it
    why_capped: str  # why we think that every token has its price; empty where nothing says so


class TriedCheck(NamedTuple):
    """A check that can start, and how it ended outside of any sandbox."""

    argv: Argv
    is_green: bool


class Confinement(NamedTuple):
    mode: str  # what [sandbox] will say; empty: nothing
    words: str


_UNTRIED = Confinement(
    "", 'not used: nothing was run to try it; [sandbox] mode = "auto" switches it on'
)


class StoriesToWrite(NamedTuple):
    name: str  # from the project's directory
    there: StoryList | None = None  # None: the file is still to be written
    copied: bytes | None = None  # from a file outside

    @property
    def is_sample(self) -> bool:
        return self.there is None and self.copied is None


@click.command()
@click.option("--prd", type=FILE, help="Your story file; one outside this directory is copied.")
@click.option(
    "--agent", metavar="NAME", shell_complete=complete_agent, help=f"{', '.join(shipped_agents())}."
)
@click.option(
    "--yes", is_flag=True, help="Run the checks and create without asking; what exists stays."
)
@click.option("--overwrite", is_flag=True, help="Replace ralph.toml and PROMPT.md if they exist.")
@click.option("--no-run", is_flag=True, help="Write the checks without running them once.")
def init(prd: Path | None, agent: str | None, yes: bool, overwrite: bool, no_run: bool) -> None:
    """Set up this directory: ralph.toml, PROMPT.md, a story list, .gitignore.

    The stack and the commands that prove its work are detected from the files here. Each command is
    run once before it is written.
    """
    root = Path.cwd()
    own = user_file(os.environ)
    before, _ = check_config(root, env=os.environ)
    stories = _stories(root, prd, before.config)
    detected = detect(root, directories=(own.parent / "stacks",) if own else ())
    choice = _choose_agent(root, agent, before)
    output.emit_lines(_found(root, detected, choice))
    asking = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    is_new = overwrite or not (root / CONFIG_NAME).exists()
    trying = (yes or asking) and is_new and not no_run and bool(detected.checks)
    words = ", running these checks once" if trying else ""
    if asking and not click.confirm(f"Set up ralph in {root}{words}?", default=True, err=True):
        output.emit_lines(["Nothing was written."])
        return
    tried = list[TriedCheck]()
    if trying:
        tried += _try_checks(root, detected.checks, before.config.checks.timeout)
        detected = msgspec.structs.replace(detected, checks=tuple(one.argv for one in tried))
    confined = _UNTRIED
    if trying or (is_new and not detected.checks):
        confined = _try_sandbox(root, tried)
    if is_new:
        output.emit_lines(_row("sandbox", confined.words))
    values = {
        "agent": choice.name,
        "command": _PLACEHOLDERS.get(choice.name, ()),
        "keys": choice.keys,
        "max_cost_usd": COST_CAP_USD if choice.why_capped else 0.0,
        "boxed": confined.mode,
        "lane_lines": tuple(recipe_lines(lane_recipe(root, _ignored(root, LOCKS)))),
    }
    planned = _planned(root, detected, stories, values)
    names = [it.name for it in planned if _settle(root, it, asking=asking, overwrite=overwrite)]
    if listed := stories.there:
        words = f"{stories.name}: {counted(listed.total, 'story')}, {listed.passed} passed"
        if listed.get("SAMPLE-1") is not None:
            words += "; these are still the sample, not yours"
        output.emit_lines(_row("kept", words))
    after, problems = check_config(root, env=os.environ)
    if CONFIG_NAME in names and (yes or asking) and not problems:
        # What was shown, agreed to and written may be run, our sample too: nobody is asked again.
        sample = root / stories.name if stories.is_sample and stories.name in names else None
        with suppress(RepositoryError):  # no place to remember it in: then a run asks
            agree_to(Project(root), sample, CONFIG_NAME, sample.name if sample else "")
    elif problems:
        words = f"{problems[0].place}: {problems[0].message} (ralph config validate)"
        output.emit_lines(_row("note", words))
    elif CONFIG_NAME not in names and after.config.stories.prd != stories.name:
        words = f'{CONFIG_NAME} names other stories; for these: stories.prd = "{stories.name}"'
        output.emit_lines(_row("note", words))
    output.emit_lines(_next_steps(root, stories, choice.name, names))


def _try_checks(root: Path, checks: Sequence[Argv], timeout: float) -> Iterator[TriedCheck]:
    """Run each check once; those that can start are worth writing."""

    def tell(words: str) -> None:
        output.note(f"{words} (Ctrl+C ends it; `ralph init --no-run` skips this)")

    for argv in checks:
        command = shlex.join(argv)
        result, trouble = try_once(argv, root, timeout, None, tell)
        if trouble is not None:
            output.emit_lines(_row("left out", f"{command}: {trouble.words}", "yellow"))
            output.emit_lines(_row("", f"fix: {trouble.fix.partition(', or take')[0]}"))
        elif result is not None:
            took = format_duration(result.duration_s)
            counts = result.counts
            passed = counts.passed if counts else 0
            failed = counts.failed if counts else 0
            if result.status is CheckStatus.FAILED:
                more = f", {counted(failed, 'test')} failed" if failed else ""
                output.emit_lines(_row("red", f"{command}, after {took}{more}", "red"))
                said = last_lines(result.output_tail)
                output.emit_lines(f"{'':12}{output.safe(line)}" for line in said)
                words = "It is written all the same: make it green before a run."
                output.emit_lines(_row("", words))
            else:
                more = f", {counted(passed, 'test')} passed" if passed else ""
                if result.status is CheckStatus.NO_TESTS:
                    more += ", but there is no test yet"
                output.emit_lines(_row("green", f"{command}, in {took}{more}", "green"))
            sys.stdout.flush()
            yield TriedCheck(argv, result.status is not CheckStatus.FAILED)
    output.emit_lines([""])


def _stories(root: Path, given: Path | None, config: Config) -> StoriesToWrite:
    """The list that was named or is there, validated; else the sample to be written."""
    try:
        path = given or story_file(Project(root), None, config)
    except InputError:
        return StoriesToWrite("prd.json")
    listed = load(path).list
    place = root / path
    is_outside = ".." in path.parts
    if place.is_relative_to(root) and not (given and is_outside):
        return StoriesToWrite(place.relative_to(root).as_posix(), listed)
    if given is None:
        return StoriesToWrite(str(path), listed)
    name = "tasks.yaml" if path.suffix in YAML_SUFFIXES else "prd.json"
    return StoriesToWrite(name, copied=path.read_bytes())


def _choose_agent(root: Path, wanted: str | None, loaded: LoadedConfig) -> ChosenAgent:
    """The agent asked for, else the one settings name, else the first that is installed."""
    places = agent_directories(root)
    if wanted is not None:
        known = known_agents(root)
        if wanted not in known:
            listed = ", ".join(known)
            step = f"One of: {listed}. `ralph docs agents` tells how to add another."
            raise UsageError(f"--agent: there is no agent {wanted[:40]!r}", step)
    elif loaded.origins["agent.name"] != DEFAULT:
        wanted = loaded.config.agent.name
    name = wanted or _first_installed(root)
    agent = load_agent(name, directories=places)
    keys = tuple(sorted(key for key in agent.keys if os.environ.get(key)))
    why_capped = f"{name} is paid by use" if agent.paid_by_use else ""
    if keys:
        why_capped = f"{' and '.join(keys)} {'is' if len(keys) == 1 else 'are'} set"
    program = agent.it.program if isinstance(agent, DeclaredAgent) else ""
    return ChosenAgent(name, program, keys, why_capped)


def _first_installed(root: Path) -> str:
    """The usual agent where it is here, else one this release was tested with, else any."""
    usual = AgentSection().name

    def rank(one: Declaration) -> tuple[bool, bool, str]:
        return (one.name != usual, not one.tested, one.name)

    for one in sorted(shipped_declarations(), key=rank):
        if find_program(one.program, os.environ, root):
            return one.name
    return usual


def _planned(
    root: Path, detected: Detection, stories: StoriesToWrite, values: Mapping[str, object]
) -> list[NewFile]:
    config = _rendered(CONFIG_NAME, checks=detected.checks, prd=stories.name, **values)
    documents = tuple(name for name in _DOCUMENTS if (root / name).is_file())
    prompt = _rendered(_PROMPT, project=detected, documents=documents)
    planned = [NewFile(CONFIG_NAME, config), NewFile(_PROMPT, prompt)]
    if stories.copied is not None:
        planned += [NewFile(stories.name, stories.copied, " (a copy)")]
    elif stories.there is None:
        sample = _rendered("prd.json", project=detected)
        remark = " (a sample with two stories)"
        planned += [NewFile(stories.name, sample, remark, replaceable=False)]
    if stories.is_sample or (root / SCHEMA_NAME).exists():
        remark = f" (editors complete and check {stories.name} with it)"
        planned += [NewFile(SCHEMA_NAME, schema_text().encode(), remark)]
    try:
        before = read_regular(root / _GITIGNORE)
    except FileNotFoundError:
        before = b""
    except OSError as error:
        raise unreadable(error, _GITIGNORE) from None
    left = _left_by_tools(root, detected)
    return [*planned, NewFile(_GITIGNORE, ignoring(before, left))]


def _left_by_tools(root: Path, detected: Detection) -> list[str]:
    """What the stack's tools make that git would take for work: neither ignored nor tracked."""
    repo = open_repository(root)
    if repo is None:
        return []
    prefix = project_prefix(repo.root, root)
    found = []
    for line, example in detected.leaves.items():
        asked = ("check-ignore", "--quiet", "--no-index", "--", f"{prefix}{example}")
        is_ignored = repo.git.attempt(*asked).returncode == 0
        anywhere = f":(top,glob){prefix}**/{line.strip('/')}/**"
        if not is_ignored and not repo.git.names("ls-files", "-z", "--", anywhere):
            found.append(line)
    return found


def _ignored(root: Path, names: Sequence[str]) -> list[str]:
    """Those of these files that git ignores here."""
    repo = open_repository(root)
    if repo is None or not all(map(_is_readable, _ignore_files(repo.root, root))):
        return []
    prefix = project_prefix(repo.root, root)
    asked = ("check-ignore", "--quiet", "--")
    return [it for it in names if repo.git.attempt(*asked, f"{prefix}{it}").returncode == 0]


def _ignore_files(top: Path, root: Path) -> Iterator[Path]:
    """What git reads to know what it ignores in a directory."""
    directories = (root, *(it for it in root.parents if it.is_relative_to(top)))
    return (directory / ".gitignore" for directory in directories)


def _is_readable(path: Path) -> bool:
    """Whether git does not wait for ever where it reads this: a pipe may have its name."""
    return path.is_file() or not path.exists()


def _try_sandbox(root: Path, tried: Sequence[TriedCheck]) -> Confinement:
    """Whether a sandbox works here, and why: checks that are green outside are run inside, once."""
    try:
        box = working_box(Config(), Project(root), open_repository(root), os.environ)
    except RalphError as error:
        fix = f" ({error.next_step})" if error.next_step else ""
        return Confinement("", f"none works here: {error.message}{fix}")
    until = time.monotonic() + _TRIED_S
    checks = [check_of(one.argv, _TRIED_S, box) for one in tried if one.is_green]
    results = run_checks(checks, root, stop=lambda: time.monotonic() >= until)
    red = [it for it in results if it.status is CheckStatus.FAILED]
    if red or len(results) < len(checks):
        which = red[0].name if red else checks[len(results)].name
        refused = in_words(refused_paths(red[0].output_tail, box), box) if red else []
        later = 'try [sandbox] mode = "auto" later'
        hint = f'{refused[0]}, then mode = "auto"' if refused else later
        words = f"not used: {which} is not green inside; {hint}"
        return Confinement("", words)
    which = "the checks" if len(checks) == len(tried) else "those green outside"
    proven = f", and {which} are green inside" if checks else ""
    return Confinement("auto", f"the agent, the checks and git's hooks are confined{proven}")


def ignoring(before: bytes, left: Sequence[str] = ()) -> bytes:
    """A .gitignore with our own files and what tools leave; what was there stays as it is."""
    known = {line.strip().strip(b"/") for line in before.splitlines()}
    missing = [name for name in (*_IGNORED, *left) if name.strip("/").encode() not in known]
    if not missing:
        return before
    end = b"\r\n" if b"\r\n" in before else b"\n"
    gap = end if before and not before.endswith((b"\n", b"\r")) else b""
    return before + gap + b"".join(name.encode() + end for name in missing)


def _rendered(name: str, **values: object) -> bytes:
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
    template = files("ralphloop.prompts") / "templates" / f"{name}.j2"
    return environment.from_string(template.read_text("utf-8")).render(**values).encode()


def _found(root: Path, detected: Detection, choice: ChosenAgent) -> Iterator[str]:
    def missing(program: str) -> bool:
        return find_program(program, os.environ, root) is None

    tools = f" ({', '.join(detected.tools)})" if detected.tools else ""
    yield from _row("stack", f"{detected.title or 'not recognised'}{tools}")
    for number, argv in enumerate(detected.checks):
        lacks = not_installed(argv, root)
        words = f" ({lacks.words})" if lacks else ""
        words = f" ({argv[0]} is not on PATH yet)" if missing(argv[0]) else words
        yield from _row("" if number else "checks", f"{shlex.join(argv)}{words}")
    if not detected.checks:
        words = "none found: until ralph.toml names some, stories can only be `claimed`"
        yield from _row("checks", words)
    is_absent = bool(choice.program) and missing(choice.program)
    yield from _row("agent", f"{choice.name}{', which is not on PATH yet' if is_absent else ''}")
    if choice.why_capped:
        words = f"${COST_CAP_USD:.0f} a session (max_cost_usd), because {choice.why_capped}"
        yield from _row("limit", words)
    hints = [*detected.hints]
    try:
        top = Repository.open(root).root
        if top.resolve() != root.resolve():
            hints += [f"this is a part of the repository at {top}; ralph will work on this part"]
    except RepositoryError as error:
        hints += [f"{error.message}; without git, less can be verified"]
    for hint in hints:
        yield from _row("note", hint)
    yield ""


def _settle(root: Path, file: NewFile, *, asking: bool, overwrite: bool) -> bool:
    """Write one file unless that would take something away unasked; False: left alone."""
    path = root / file.name
    try:
        fate = "same" if read_regular(path) == file.data else "replaced"
    except FileNotFoundError:
        fate = "created"
    except OSError:
        fate = "replaced"  # whatever it is, it is not ours
    if fate == "same":
        output.emit_lines(_row("kept", f"{file.name}: it is up to date"))
        return False
    if fate == "replaced" and file.name == _GITIGNORE:
        fate = "extended"
    elif fate == "replaced" and not (overwrite and file.replaceable):
        question = f"{file.name} exists. Replace it?"
        if not (asking and click.confirm(question, default=False, err=True)):
            hint = " (--overwrite replaces it)" if file.replaceable else ""
            output.emit_lines(_row("kept", f"{file.name}: it exists{hint}"))
            return False
    # In one step, and never through a link that leads out of the project.
    write_atomic(path, file.data, within=root)
    output.emit_lines(_row(fate, f"{file.name}{file.remark}"))
    return True


def _next_steps(
    root: Path, stories: StoriesToWrite, agent: str, written: list[str]
) -> Iterator[str]:
    steps = []
    if agent in _PLACEHOLDERS and CONFIG_NAME in written:
        steps.append(f"name your program in {CONFIG_NAME}: agent.command")
    other = list_of_another_tool(root) if stories.is_sample else ""
    if other:
        steps.append(f"ralph plan {shlex.quote(other)}  makes stories of the list that is there")
    elif stories.is_sample:
        steps.append(f'ralph stories add "…"  replaces the sample; or edit {stories.name}')
    if git_directory(root) is None:
        steps.append("git init              (ralph commits each story that passes)")
        written = [*dict.fromkeys([*written, _GITIGNORE])]
    if written:
        steps.append(f"git add {shlex.join(written)}\n     git commit -m 'Set up ralph'")
    steps += ["ralph run --dry-run   shows the plan and first prompt, spends nothing"]
    if agent not in _PLACEHOLDERS:
        steps += ["ralph run --probe     one tiny paid start, to see that it can work here"]
    steps += ["ralph run             runs it"]
    yield from ("", "Next:", *(f"  {number}. {step}" for number, step in enumerate(steps, 1)))
