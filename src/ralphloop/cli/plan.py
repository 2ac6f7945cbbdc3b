"""`ralph plan`: from words, a file or a story that got stuck to stories that can be checked.

Nothing is written before a person accepts it (`--yes` stands for that), and no command that was
proposed is run before a person says yes to just that.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import click
import msgspec

from ralphloop.agents.base import Inquiry
from ralphloop.atomic import write_atomic
from ralphloop.cli import output
from ralphloop.cli.shared.accepting import Author, Means, SealedPlan, author_of, seal_for
from ralphloop.cli.shared.agreement import settle_trust
from ralphloop.cli.shared.options import FILE, complete_agent, dollars, duration, json_option
from ralphloop.cli.shared.seals import refuse_while_running
from ralphloop.cli.shared.steering import refuse_agent
from ralphloop.config.load import load_config
from ralphloop.core.run_state import StoryState
from ralphloop.core.totals import spent_words
from ralphloop.errors import AgentUnavailable, ExitCode, InputError, Level, RalphError, UsageError
from ralphloop.loop.confine import confine, working_box
from ralphloop.loop.prepare import (
    MAX_PROMPT_BYTES,
    Options,
    Setup,
    assemble,
    open_repository,
    read_words,
)
from ralphloop.night.look import look, story_file
from ralphloop.plan import conversation, outlook
from ralphloop.plan.asking import Asker
from ralphloop.plan.conversation import PlanQuestion
from ralphloop.plan.convert import LIST_NAMES, Gathered, convert, convert_gathered
from ralphloop.plan.draft import Draft, drafted, examined, look_at_shelf, write, write_split
from ralphloop.plan.finding import gather
from ralphloop.plan.importers.reading import Conversion, Unread, made
from ralphloop.proc.sandbox import NONE
from ralphloop.project import find_project, relative
from ralphloop.repo.git import Git
from ralphloop.repo.github import issues_as_text
from ralphloop.sealed import sealed_files
from ralphloop.stories.lint import Remark, as_lines
from ralphloop.stories.names import label, slug
from ralphloop.stories.sample import is_sample
from ralphloop.stories.source import position
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import clean, counted, one_line, some
from ralphloop.trust import grants_of

_LONG = 600  # characters: what is longer is kept as a spec
_MOST_STAT = 4_000
_MOST_UNREAD = 20
_MOST_ALIKE = 3  # remarks that are said one by one
_PATIENCE_S = 120.0  # for one verify command
_FILES = (".md", ".markdown", ".txt", ".json", ".yaml", ".yml")
_KEYS = "[a]ccept, [e]dit, or [q]uit and throw it away"
_CHOICE = click.Choice(["a", "e", "q"], case_sensitive=False)
_row = partial(output.row, width=10)


@click.command()
@click.argument("words", nargs=-1, metavar="[FILE | DIRECTORY | - | IDEA…]")
@click.option("--issue", "issues", type=int, multiple=True, metavar="N", help="An issue on GitHub.")
@click.option("--label", "labels", multiple=True, metavar="L", help="Open issues with this label.")
@click.option("--repo", metavar="OWNER/NAME", help="Whose issues, if not those of the remote.")
@click.option("--split", metavar="ID", help="Make two to four smaller stories of this one.")
@click.option("--prd", type=FILE, help="The story file to extend.")
@click.option("--replace", is_flag=True, help="Begin the list anew; the old one is kept.")
@click.option(
    "--seal",
    metavar="AGENT[:MODEL]",
    shell_complete=complete_agent,
    help="Another agent writes acceptance tests; they are sealed after your yes.",
)
@click.option("--ask", "must_ask", is_flag=True, help="Ask an agent also where it is a list.")
@click.option("--agent", help="Which agent reads and proposes; else that of ralph.toml.")
@click.option("--model", help="Which model it should use.")
@click.option("--max-cost", type=dollars, default="5", help="For all its starts; default 5.")
@click.option("--max-time", type=duration, default="20m", help="For all its starts; default 20m.")
@click.option("--questions", type=FILE, help="Write what it asks to this file, and end.")
@click.option("--answers", type=FILE, help="That file, with your answers.")
@click.option("--yes", is_flag=True, help="Write without asking; nothing proposed is run.")
@click.option(
    "--try", "trying", is_flag=True, help="Run each proposed verify once, before writing."
)
@click.option("--dry-run", is_flag=True, help="Show the plan of a list, or the prompt; no more.")
@json_option("One object; writes only with --yes.")
def plan(words: tuple[str, ...], **typed: object) -> None:
    """Make stories of an idea, a document or a checklist, and look at them before they are written.

    \b
    ralph plan "Let people export their notes as CSV"
    ralph plan docs/prd.md
    ralph plan specs/001-export
    ralph plan --issue 12 --issue 15
    ralph plan --split US-7
    ralph plan docs/prd.md --seal codex   acceptance tests by another agent
    ralph plan --seal codex               the same for the stories that are open
    """
    wanted = SimpleNamespace(**typed)
    on_github = bool(wanted.issues or wanted.labels)
    ways = [name for name, is_used in (
        ("--split", wanted.split), ("--issue", on_github), ("words", words)
    ) if is_used]  # fmt: skip
    if len(ways) > 1:
        told = "--split takes its words from the story, --issue from GitHub"
        raise UsageError(told, "Leave out all but one.")
    project = find_project()
    seals_only = bool(wanted.seal) and not ways
    source = None
    if not (wanted.split or on_github or seals_only):
        source = source_of(words, project.root)
    refuse_agent(project, "plan")
    named = {"agent.name": wanted.agent, "agent.model": wanted.model}
    flags = {name: value for name, value in named.items() if value is not None}
    options = Options(start=Path.cwd(), flags=flags)
    loaded = load_config(project.root, env=options.env, flags=flags)
    setup = assemble(options, project, loaded.config, None, open_repository(project.root))
    setup = msgspec.structs.replace(setup, grants=grants_of(loaded, project.root))
    if on_github:
        text = issues_as_text(Git(project.root), wanted.issues, wanted.labels, repo=wanted.repo)
        source = PlanText(text, is_strangers=True)
    if (wanted.split or wanted.replace) and look(project).working:
        # What vanishes from the list while an agent works is taken for its doing.
        step = "`ralph pause`, and wait until it ends."
        raise UsageError("an agent is at work on this list", step)
    author = None
    if wanted.seal:
        # Whoever plans may well be another one than who will work.
        author = author_of(wanted.seal, load_config(project.root, env=options.env).config)
        refuse_while_running(project)
        if wanted.as_json and not wanted.yes:
            step = "Add --yes, or leave out --seal."
            raise UsageError("nothing is sealed without a yes, and --json asks nobody", step)
    desk = PlanDesk(setup, wanted, author)
    if seals_only:
        desk.seal_open_stories()
    elif source:
        _plan(desk, source)
    else:
        _split(desk, wanted.split)


class SpecFile(NamedTuple):
    """A text that the stories lean on: where it stands, and what is to be written there first."""

    path: str = ""
    text: str = ""  # empty: it is there already


class PlanResult(NamedTuple):
    draft: Draft
    kind: str
    about: Mapping[str, str] = {}  # what its source says of the whole
    unread: tuple[Unread, ...] = ()  # lines of its source that became nothing
    refused: tuple[str, ...] = ()
    answers: tuple[PlanQuestion, ...] = ()
    spec: SpecFile = SpecFile()
    dollars: float = 0.0
    unpriced: int = 0
    starts: int = 0
    seconds: float = 0.0


class Expected(NamedTuple):
    """How large the stories are, and what they will take together."""

    sizes: list[str]
    estimate: outlook.Estimate


class PlanDesk:
    """Who can be asked, what was wanted, and what may be done with a plan."""

    def __init__(self, setup: Setup, wanted: SimpleNamespace, author: Author | None = None) -> None:
        self.author = author  # of acceptance tests
        project = setup.project
        config = setup.config
        self.setup = setup
        self.root = project.root
        self.wanted = wanted
        self.proposal = project.directory / "plan" / "proposal.json"
        try:  # the list that is there, or the place of one
            path = wanted.prd or story_file(project, None, config)
        except InputError:
            path = self.root / config.stories.prd
        self.shelf = shelf = look_at_shelf(path)
        nobody = wanted.yes or wanted.as_json
        self.asking = not nobody and sys.stdin.isatty() and sys.stderr.isatty()
        self.replace = wanted.replace or is_sample(shelf.listing)
        # What new stories have to get along with.
        self.base = shelf._replace(stories=()) if self.replace else shelf

    def insist_on_reader(self) -> None:
        """End here where a plan could be neither accepted nor printed."""
        wanted = self.wanted
        if not (self.asking or wanted.yes or wanted.as_json or wanted.dry_run):
            ways = "Add --yes, --json, --dry-run or --questions FILE."
            raise UsageError("nobody can be asked here", ways)

    def settle(self, found: PlanResult, split: str = "") -> None:
        self.insist_on_reader()
        if not found.draft.entries:
            told = [*found.draft.told, *_unread_lines(found.unread)]
            output.emit_lines([*map(output.safe, told), "There is nothing to add."])
            return
        self._show(found)
        only_shown = self.wanted.dry_run or (self.wanted.as_json and not self.wanted.yes)
        result = None if only_shown else self._ask_to_accept(found)
        if result is None:
            self._emit(found, None, None)
            return
        result = result._replace(draft=self._try_commands(result.draft))
        spec = result.spec
        if spec.text:
            write_atomic(self.root / spec.path, spec.text.encode(), within=self.root, parents=True)
        entries = result.draft.entries
        room = self.setup.project.directory
        if split:
            kept: Path | None = write_split(self.shelf, split, entries, room)
        else:
            about = {"project": self.root.name, **result.about}
            kept = write(self.shelf, entries, room, replace=self.replace, **about)
        sealed = SealedPlan()
        try:
            if self.author is not None:
                sealed = self._seal(self.author, result)
        finally:  # the stories are written, whatever became of their tests
            self._emit(result, self.shelf.path, kept, sealed)

    def _seal(self, author: Author, result: PlanResult) -> SealedPlan:
        """Acceptance tests for the stories of a plan, with what planning left of its means."""
        wanted = self.wanted
        dollars = wanted.max_cost - result.dollars if wanted.max_cost else None
        means = Means(dollars, wanted.max_time - result.seconds)
        stories = look_at_shelf(self.shelf.path).stories
        new = {str(entry["id"]) for entry in result.draft.entries}
        mine = [story for story in stories if story.id in new]
        return seal_for(self.setup, author, mine, means, has_yes=wanted.yes)

    def seal_open_stories(self) -> None:
        """Acceptance tests for the stories of the list that have none."""
        wanted = self.wanted
        if not (self.asking or wanted.yes or wanted.dry_run):
            step = "Nothing is sealed without a yes: add --yes."
            raise UsageError("nobody can be asked here", step)
        known = sealed_files(self.setup.project.root, os.environ)
        has_tests = {name for file in known for name in file.stories}
        mine = [it for it in self.shelf.stories if not it.passes and it.id not in has_tests]
        if self.author is None or not mine:
            output.emit_lines(["No open story is without sealed tests."])
            return
        names = some([label(story.id) for story in mine])
        if wanted.dry_run:
            output.emit_lines([f"{self.author} would be asked for tests of {output.safe(names)}."])
            return
        means = Means(wanted.max_cost or None, wanted.max_time)
        sealed = seal_for(self.setup, self.author, mine, means, has_yes=wanted.yes)
        if wanted.as_json:
            output.emit_json({"acceptance": sealed.as_data()})

    def _ask_to_accept(self, result: PlanResult) -> PlanResult | None:
        """The plan as it is or as it was edited; None: it is thrown away."""
        if self.wanted.yes and result.refused:
            kept = relative(self.proposal, self.root)
            told = f"the linter refuses {counted(len(result.refused), 'thing')} in the proposal"
            step = f"Nothing was written. Mend {kept} and run: ralph plan {kept} --yes"
            raise InputError(told, step)
        while not self.wanted.yes:
            key = click.prompt(_KEYS, type=_CHOICE, show_choices=False, err=True)
            if key == "q":
                return None
            if key == "a":
                break
            text = json.dumps(result.draft.entries, indent=2, ensure_ascii=False) + "\n"
            try:
                entries = json.loads(click.edit(text, extension=".json") or text)
                draft = examined([{**entry, "passes": False} for entry in entries], self.base)
                result = result._replace(draft=draft)
            except (RalphError, ValueError, TypeError) as error:  # it is said, nothing is lost
                words = f"what you wrote cannot be used: {one_line(str(error), 500)}"
                output.error(words, "press e again")
            self._show(result)
        return result

    def _try_commands(self, draft: Draft) -> Draft:
        """Run the proposed commands where a person said yes to that; those that cannot start go."""
        commands = [story for story in draft.stories if story.verify]
        entries = {str(entry["id"]): entry for entry in draft.entries}
        for story in commands:
            entries[story.id]["verifyTried"] = outlook.NOT_TRIED
        if not commands or not (self.wanted.trying or self.asking):
            return draft
        setup = self.setup
        box = None
        where = "in the sandbox, without a network"
        try:
            box = working_box(setup.config, setup.project, setup.repo, os.environ)
            box = msgspec.structs.replace(box, network=NONE, relay="")
        except RalphError as error:
            where = f"with your own rights: no sandbox works here ({error.message})"
        question = f"Run {counted(len(commands), 'verify command')} once now, {where}?"
        if not self.wanted.trying and not click.confirm(question, default=False, err=True):
            return draft
        output.note(f"trying {where}")
        patience = min(_PATIENCE_S, setup.config.checks.timeout)
        for story in commands:
            argv = story.verify or ()
            entry = entries[story.id]
            result, trouble = outlook.try_once(
                argv, self.root, patience, box, output.note, proves_story=True
            )
            if trouble:
                mark = f"refused, it cannot start: {trouble.words}"
                del entry["verify"], entry["verifyTried"]
            elif result is not None:
                entry["verifyTried"] = mark = outlook.shown_by(result)
            output.note(f"  {label(story.id)}: {mark}")
            for words in outlook.held_already(story, result) if result else ():
                output.note(f"    {words}")
        return examined(draft.entries, self.base, draft.told)

    def _expected(self, draft: Draft) -> Expected:
        sizes = [outlook.size_of(story, self.root) for story in draft.stories]
        past = outlook.past_stories(self.setup.project, self.shelf.stories)
        return Expected(sizes, outlook.estimated(sizes, past))

    def _show(self, result: PlanResult) -> None:
        if self.wanted.as_json:
            return
        draft = result.draft
        sizes, estimate = self._expected(draft)
        doubted = {one.story for one in draft.remarks}
        lines = [*outlook.table(draft.stories, sizes, doubted, whole=bool(result.starts))]
        if any(story.depends_on for story in draft.stories):
            lines += ["", *outlook.tree(draft.stories)]
        lines += ["", *_row("estimate", estimate.words())]
        if result.starts:
            lines += _row("cost", f"this plan: {spent_words(result.dollars, result.unpriced)}")
        for line in draft.told:
            lines += _row("note", line)
        for line in _unread_lines(result.unread):
            lines += _row("not read", line)
        for line in _in_groups(draft.remarks):
            lines += _row("!", line)
        output.emit_lines(map(output.safe, lines))

    def _emit(
        self,
        result: PlanResult,
        written: Path | None,
        kept: Path | None,
        sealed: SealedPlan | None = None,
    ) -> None:
        draft = result.draft
        if self.wanted.as_json:
            sizes, estimate = self._expected(draft)
            output.emit_json({
                **output.picked(result, "kind", "answers", "unpriced"),
                "stories": draft.entries,
                "sizes": dict(zip((story.id for story in draft.stories), sizes, strict=True)),
                "remarks": [one._asdict() for one in draft.remarks],
                "notes": draft.told,
                "unread": [one._asdict() for one in result.unread],
                "estimate": estimate._asdict(),
                "cost_usd": result.dollars,
                "written": str(written) if written else None,
                "kept": str(kept) if kept else None,
                **({"acceptance": sealed.as_data()} if sealed and self.author else {}),
            })  # fmt: skip
        elif written is None:
            output.emit_lines(["Nothing was written."])
            if self.author is not None:
                output.note(f"{self.author} was not asked for tests.")
        else:
            name = relative(written, self.root)
            add = ""
            lines = [f"{counted(len(draft.entries), 'story')} written to {name}."]
            lines += [f"The list before: {relative(kept, self.root)}"] if kept else []
            if result.spec.text:
                lines.append(f"What was asked for, with the answers: {result.spec.path}")
                add = f"git add {name} {result.spec.path} && git commit, then "
            output.emit_lines(map(output.safe, lines))
            output.note(f"next: {add}ralph run --dry-run")


class PlanText(NamedTuple):
    text: str
    path: Path | None = None
    gathered: Gathered | None = None  # the files that the path means
    is_strangers: bool = False  # read by the agent that plans, and by no other


def source_of(words: tuple[str, ...], root: Path) -> PlanText:
    """The text: of a file or a directory, of stdin, or the words themselves."""
    if not words:
        ways = 'ralph plan docs/prd.md, or: ralph plan "an idea in words"'
        raise UsageError("say what to plan", ways)
    if words == ("-",):
        source = PlanText(sys.stdin.buffer.read(MAX_PROMPT_BYTES).decode("utf-8", "replace"))
    elif len(words) == 1 and _is_path(words[0]):
        path = Path(words[0])
        gathered = gather(path, root)
        source = PlanText(_whole_text(gathered), path, gathered)
    else:
        source = PlanText(" ".join(words))
    if not source.text.strip():
        raise InputError("is empty", "Write what is wanted.", place=words[0])
    return source


def _is_path(word: str) -> bool:
    """Whether somebody means a file by it, one that is there or one that is missing."""
    # Not Path.exists: an idea may be too long for a name.
    if os.path.exists(word):  # noqa: PTH110
        return True
    looks_like_one = "/" in word or word.startswith(".") or Path(word).suffix in _FILES
    return looks_like_one and not any(char.isspace() for char in word)


def _whole_text(gathered: Gathered) -> str:
    """What an agent would read: the list, and what stands beside it under its name."""
    first, *others = gathered.documents
    return "\n\n".join([first.text, *(f"# {one.path}\n\n{one.text}" for one in others)])


def _plan(desk: PlanDesk, source: PlanText) -> None:
    must_ask = desk.wanted.must_ask or source.is_strangers
    found = None if must_ask else _converted(desk, source)
    if found is None:
        desk.settle(ask_agent_for_plan(desk, source))
        return
    place = str(source.path) if source.path else ""
    draft = drafted(found.entries, desk.base, place=place)
    if found.done:
        draft.told.insert(0, f"{counted(found.done, 'story')} marked as done there: left out")
    draft.told.extend(found.told)
    about = made(project=found.project, description=found.description)
    named = {key: str(value) for key, value in about.items()}
    desk.settle(PlanResult(draft, found.kind, named, found.unread))


def _converted(desk: PlanDesk, source: PlanText) -> Conversion | None:
    """The stories of a list; None where it is prose, which only an agent can read."""
    if source.gathered is None:
        return convert(source.text, "")
    found = convert_gathered(source.gathered, desk.base.titles)
    is_named_as_list = source.gathered.documents[0].name in LIST_NAMES
    is_list = source.gathered.format is not None or is_named_as_list
    has_nothing = found is None or not (found.entries or found.done)
    if is_list and has_nothing:
        unread = found.unread if found else ()
        output.emit_lines(map(output.safe, _unread_lines(unread)))
        step = "Nothing was written. To have an agent read it, which may cost money, add --ask."
        raise InputError("no task was found in it", step, place=str(source.path))
    return found


def _unread_lines(unread: Sequence[Unread]) -> list[str]:
    """The first of what was not read, each by its file and line."""
    lines = [str(one) for one in unread[:_MOST_UNREAD]]
    if len(unread) > _MOST_UNREAD:
        lines.append(f"and {len(unread) - _MOST_UNREAD} more: --json names all")
    return lines


def _in_groups(remarks: Sequence[Remark]) -> list[str]:
    """What is remarked upon, the same of many stories on one line."""
    groups = dict[str, list[Remark]]()
    for remark in remarks:
        groups.setdefault(f"{remark.words}; {remark.fix}", []).append(remark)
    lines = list[str]()
    for words, group in groups.items():
        if len(group) <= _MOST_ALIKE:
            lines += as_lines(group)
        else:
            names = some([label(remark.story) for remark in group])
            lines.append(f"{counted(len(group), 'story')} ({names}): {words}")
    return lines


def _split(desk: PlanDesk, name: str) -> None:
    shelf = desk.shelf
    setup = desk.setup
    story = shelf.stories[position(shelf.listing, name)]
    if story.passes:
        raise UsageError(f"{label(name)} has passed", "Plan what is missing: ralph plan …")
    known = look(setup.project).session.stories
    changed = ""
    state = known.get(name, StoryState())
    if setup.repo and state.base.saved_ref:
        told = setup.repo.git.attempt("show", "--stat", "--format=", state.base.saved_ref, "--")
        changed = told.stdout[-_MOST_STAT:].decode("utf-8", "replace")
    source = PlanText(conversation.text_of_split(story, state, changed))
    found = ask_agent_for_plan(desk, source, split=name, left_at=state.base.saved_ref)
    desk.settle(found, name)


def ask_agent_for_plan(
    desk: PlanDesk, source: PlanText, split: str = "", left_at: str = ""
) -> PlanResult:
    """What an agent makes of the text, with what it cost and where the text is kept."""
    wanted = desk.wanted
    if source.path and len(source.text.encode()) > MAX_PROMPT_BYTES:
        step = "Name a smaller file, or move the bulk into files of the repository."
        raise InputError("is longer than a prompt may be, 1 MB", step, place=str(source.path))
    given = _answers(wanted.answers) if wanted.answers else ()
    brief = conversation.Brief(clean(source.text), desk.base, split, left_at, given)
    if wanted.dry_run:
        text = conversation.prompt_for(brief, desk.setup, may_ask=not given)
        output.emit_lines(text.splitlines())
        raise click.exceptions.Exit(ExitCode.COMPLETE)
    if not wanted.questions:
        desk.insist_on_reader()
    # Everything is settled that must be before it is started.
    settle_trust(desk.setup)
    desk.setup = confine(desk.setup)
    worker = desk.setup.workers[0]
    site = desk.setup.site
    box = site.agent_boxes.get(worker.name)
    inquiry = Inquiry(worker.config, desk.root, site.env_for(worker.name), box=box)
    for finding in worker.agent.check(inquiry):
        if finding.level is Level.ERROR:
            raise AgentUnavailable(finding.message, finding.fix)
    most = f"${wanted.max_cost:.2f} and " if wanted.max_cost else ""
    bounds = f"at most {most}{format_duration(wanted.max_time)}"
    output.note(f"asking {worker.by}, which only reads: {bounds}")
    tell = (lambda line: output.note(f"  {one_line(line, 100)}")) if desk.asking else lambda _: None
    asker = Asker(desk.setup, max_cost=wanted.max_cost, max_time=wanted.max_time, tell=tell)
    try:
        draft, refused, answers = conversation.propose(
            asker, desk.setup, brief, partial(_ask, desk), output.note
        )
    finally:
        if asker.starts:
            paid = spent_words(asker.usage.dollars, asker.unpriced)
            output.note(f"asked {worker.by} {counted(asker.starts, 'time')}: {paid}")
    spec = SpecFile() if split else _spec_of(desk.root, source, answers)
    if spec.path:
        for entry in draft.entries:
            entry.setdefault("parent_spec", spec.path)
    # It was paid for: whatever becomes of it here, `ralph plan` can read it again.
    data = json.dumps({"userStories": draft.entries}, indent=2, ensure_ascii=False).encode()
    write_atomic(desk.proposal, data + b"\n", durable=False)
    return PlanResult(
        draft,
        "proposal",
        refused=tuple(refused),
        answers=answers,
        spec=spec,
        dollars=asker.usage.dollars,
        unpriced=asker.unpriced,
        starts=asker.starts,
        seconds=asker.seconds,
    )


def _spec_of(root: Path, source: PlanText, answers: tuple[PlanQuestion, ...]) -> SpecFile:
    """The text that stories lean on: the file it came from, or one to be written."""
    real = source.path.resolve() if source.path and source.path.is_file() else None
    if real and real.is_relative_to(root.resolve()) and not answers:
        return SpecFile(relative(real, root.resolve()))
    text = "" if source.is_strangers else source.text
    if answers or len(text) > _LONG:
        place = f"specs/{slug(one_line(source.text, 60))}.md"
        return SpecFile(place, conversation.spec_text(text, answers))
    return SpecFile()


def _ask(desk: PlanDesk, questions: list[PlanQuestion]) -> list[PlanQuestion]:
    """A person's answers; where nobody is there, what was proposed, said aloud."""
    file = desk.wanted.questions
    answered = []
    if file:
        data = [msgspec.to_builtins(one) for one in questions]
        write_atomic(file, json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n")
        output.note(f"{counted(len(data), 'question')} written to {file}")
        output.note(f'next: fill in "answer", then the same command with --answers {file}')
        raise click.exceptions.Exit(ExitCode.BLOCKED)
    for number, one in enumerate(questions, start=1):
        said = one.proposed
        if desk.asking:
            output.note(f"\n{number} of {len(questions)}: {one.question}\n  {one.why}".rstrip())
            said = click.prompt("  Answer", default=output.safe(said), err=True)
        else:
            output.note(f"taken as proposed: {one.question} {said}")
        answered.append(msgspec.structs.replace(one, answer=clean(said)[:4000]))
    return answered


def _answers(file: Path) -> tuple[PlanQuestion, ...]:
    """The questions of a file with what a person wrote beside them."""
    try:
        found = msgspec.json.decode(read_words(file), type=list[PlanQuestion])
        return tuple(found[: conversation.MOST_QUESTIONS])
    except msgspec.DecodeError as error:
        step = "It is the file that --questions wrote."
        raise InputError(f"cannot be read: {error}", step, place=str(file)) from None
