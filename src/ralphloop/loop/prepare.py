"""Everything a run needs, found and checked before anything is started.  Nothing here writes."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ralphloop.config.model import AgentSection, Config, policy_of
from ralphloop.core.accounts import AgentPlaces, Party, accounts_of
from ralphloop.core.iteration import AgentClocks
from ralphloop.core.model import Story, StoryList, Value
from ralphloop.core.planning import rungs_in_order
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import AGENT_GONE
from ralphloop.errors import (
    AgentUnavailable,
    Finding,
    GitDisturbed,
    InputError,
    RepositoryError,
    unreadable,
)
from ralphloop.journal.queries import JournalReader
from ralphloop.learning import OWN_FILES as LEARNED_FILES
from ralphloop.proc.sandbox import BOXED, Box
from ralphloop.project import (
    ERRANDS,
    LANE_VARIABLE,
    Project,
    agent_directories,
    find_project,
    relative,
    tree_top,
)
from ralphloop.repo.work_tree import OwnFiles, Repository, never_progress, project_prefix
from ralphloop.room import read_regular
from ralphloop.stories.provenance import ListSource, sources_of
from ralphloop.stories.shapes import ADD_A_STORY
from ralphloop.stories.source import (
    StoryFile,
    find_source,
    load,
    resolve_parent_spec,
    story_text,
)

if TYPE_CHECKING:
    from ralphloop.agents.base import Agent, AgentRequest, Inquiry, Launch
    from ralphloop.trust import Grant

PROMPT_NAME = "PROMPT.md"
MAX_PROMPT_BYTES = 1 << 20
_MOST_READ = 1 << 30  # what is larger is told by its size


class Options(Value, kw_only=True):
    """What was asked on the command line."""

    start: Path  # where the command was given
    specs_dir: Path | None = None
    prd: Path | None = None
    prompt: Path | None = None  # a plain loop without stories
    only: str | None = None  # --story
    resume: bool = False  # --continue
    allow_dirty: bool = False
    allow_red: bool = False
    wait: bool = True
    reset_circuit: bool = False
    session: str = ""  # the agent session that carries the loop; empty: we start the agent
    verbose: int = 0
    quiet: bool = False
    as_json: bool = False
    trust: str = ""  # --trust: a yes for this run, or the hash of what it is a yes to
    flags: Mapping[str, object] = msgspec.field(default_factory=dict)
    env: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))


class Site(Value, kw_only=True):
    """A place in which stories are worked on or judged, as it was found; nothing in it changes."""

    project: Project
    repo: Repository | None
    stories: StoryFile | None  # None: a plain loop
    within: Path  # the story file is never written outside of it, whatever link stands there
    specs_dir: Path
    own: OwnFiles
    env: Mapping[str, str]  # what is inherited there
    agent_boxes: Mapping[str, Box] = msgspec.field(default_factory=dict)  # by the agent's name
    check_box: Box | None = None
    lands_on: str = ""  # the branch that stories of lanes land on; this is the landing tree
    litter: tuple[str, ...] = ()  # what agents leave beside their work, from the project on
    is_of_session: bool = False  # an agent session carries the loop: a new process every turn
    # Where stories were read from and are marked as well, by their ids; empty: nowhere.
    sources: Mapping[str, ListSource] = msgspec.field(default_factory=dict)

    def env_for(self, agent: str) -> Mapping[str, str]:
        """What an agent inherits, and whether it is told of a sandbox around it."""
        env = {name: value for name, value in self.env.items() if name != BOXED}
        return {**env, BOXED: "1", "IS_SANDBOX": "1"} if agent in self.agent_boxes else env

    @property
    def has_neighbours(self) -> bool:
        """Others may work beside us in the same work tree."""
        return self.repo is not None and bool(self.repo.scope)

    @property
    def source_name(self) -> str:
        return relative(self.stories.path, self.project.root) if self.stories else ""

    @property
    def listed(self) -> str:
        """The story file, from the repository's root; empty where it lies elsewhere."""
        if self.repo is None or self.stories is None:
            return ""
        real = self.stories.path.resolve()
        root = self.repo.root.resolve()
        return real.relative_to(root).as_posix() if real.is_relative_to(root) else ""

    @property
    def is_errand(self) -> bool:
        """One story of the command line, which leaves the project's own list alone."""
        return self.source_name.startswith(ERRANDS)


class Setup(Value, kw_only=True):
    """What a person asked for, and the checkout in which they did."""

    options: Options
    config: Config
    policy: Policy
    site: Site
    instructions: str
    workers: tuple[Worker, ...]  # the agent, and those that may take over
    reviewers: tuple[Worker, ...] = ()  # that may doubt, as they were when the run began
    grants: tuple[Grant, ...] = ()  # lines of the repository that need a person's yes
    handed: tuple[str, ...] = ()  # what the repository has a say in, to be said at the start
    confined: str = ""  # what is confined and what is not, in words
    # Other machines that work for the run, by name; kept up with what they say meanwhile.
    places: Mapping[str, AgentPlaces] = msgspec.field(default_factory=dict)

    @property
    def project(self) -> Project:
        return self.site.project

    @property
    def repo(self) -> Repository | None:
        return self.site.repo

    @property
    def stories(self) -> StoryFile | None:
        return self.site.stories

    def lacking(self) -> list[Grant]:
        """What nobody has said yes to."""
        from ralphloop.trust import missing

        return missing(self.grants, self.project.root, self.options.env, self.options.trust)

    def insist_on_trust(self) -> None:
        """End here where a person has not said yes; nothing was started or written."""
        from ralphloop.trust import not_trusted, said_yes

        if lacking := self.lacking():
            given = said_yes(self.options.env, self.options.trust)
            agent = str(self.options.flags.get("agent.name") or "")
            raise not_trusted(self.grants, lacking, given, agent)

    @property
    def trusts_all(self) -> bool:
        """Somebody said yes to whatever is there, without looking: --trust."""
        from ralphloop.trust import YES, said_yes

        return said_yes(self.options.env, self.options.trust) == YES

    def may_verify(self, argv: Sequence[str]) -> bool:
        """Whether that command of a story, which may be new since the run began, may be run."""
        from ralphloop.trust import YES, may_verify

        options = self.options
        checks = self.config.checks.commands
        given = YES if any(one.runs(argv) for one in self.grants) else options.trust
        return may_verify(argv, self.project.root, options.env, checks, given)

    def site_of_stories(self, source: str) -> Site:
        """The same place with the stories of that file."""
        stories = load(self.project.root / source) if source else None
        found = find_site(self.options, self.project, self.config, stories, self.repo)
        return msgspec.structs.replace(
            self.site,
            stories=stories,
            within=found.within,
            specs_dir=found.specs_dir,
            own=found.own,
            sources=found.sources,
        )


def prepare(options: Options) -> Setup:
    """Find and check everything, or raise with the place and the way out."""
    from ralphloop.config.load import load_config
    from ralphloop.trust import grants_of, handed_on

    project = find_project(options.start)
    loaded = load_config(project.root, env=options.env, flags=options.flags)
    stories = None if options.prompt else _stories(options, project, loaded.config)
    if stories and options.only is not None:
        only = _story_named(options.only, stories.list)
        options = msgspec.structs.replace(options, only=only)
    setup = assemble(options, project, loaded.config, stories, open_repository(project.root))
    listed = stories.list.stories if stories else ()
    path = stories.path if stories else None
    grants = grants_of(loaded, project.root, listed, path)
    setup = msgspec.structs.replace(setup, grants=grants, handed=handed_on(loaded))
    if stories is not None:
        _refuse_sample(stories, options.only)
    # What would fail in the middle of the night fails now.
    for story in listed:
        if not story.passes:
            spec_of(story, setup.site)
    branch = stories.list.branch_name if stories else None
    try:
        if setup.repo is not None and branch:
            setup.repo.check_branch_name(branch)
    except GitDisturbed:
        raise
    except RepositoryError as error:  # a mistake in the file, not in the repository
        place = f"{path.name}: branchName" if path else ""
        raise InputError(error.message, error.next_step, place=place) from None
    return setup


def assemble(
    options: Options,
    project: Project,
    config: Config,
    stories: StoryFile | None,
    repo: Repository | None,
) -> Setup:
    """The same from settings, stories and a repository that are known already."""
    by_hook = bool(options.session)
    # What the agent is told besides its story; without stories it is all it is told.
    prompt = options.prompt or project.root / PROMPT_NAME
    told = ""
    if options.prompt is not None or prompt.exists():
        told = read_words(prompt, within=None if options.prompt else tree_top(project.root))
        if options.prompt is not None and not told.strip():
            raise InputError("is empty", "Write what the agent should do.", place=str(prompt))
    if by_hook:
        workers: tuple[Worker, ...] = (Worker(agent=_Session(), config=config.agent),)
    else:
        workers = _workers(config, project.root.resolve())
    return Setup(
        options=options,
        config=config,
        policy=policy_of(config, mode="hook" if by_hook else "script"),
        site=find_site(options, project, config, stories, repo),
        instructions=told,
        workers=workers,
        reviewers=_reviewers(config, project.root.resolve()),
    )


def _litter(config: Config, root: Path) -> tuple[str, ...]:
    """What the agents of the settings leave beside their work, those that only read as well."""
    from ralphloop.agents.declared import litter_of

    agent = config.agent
    rungs = (rung.agent for rung in agent.rungs())
    reviewers = (
        argv[0].removeprefix(_REVIEWER) for argv in filter(is_reviewer, config.checks.doubt)
    )
    names = (agent.name, *agent.fallback, *rungs, *reviewers)
    return litter_of(dict.fromkeys(names), root)


def find_site(
    options: Options,
    project: Project,
    config: Config,
    stories: StoryFile | None,
    repo: Repository | None,
) -> Site:
    """The checkout as a place to work in."""
    root = project.root.resolve()
    real = stories.path.resolve() if stories else root / PROMPT_NAME
    prefix = project_prefix(repo.root, project.root) if repo else ""
    scope = prefix if config.git.scope == "project" else ""
    listed = []
    if stories:
        listed.append(relative(real, repo.root if repo else root))
    sources = dict[str, ListSource]()
    if stories and config.stories.write_back:
        sources = sources_of(story_text(stories.path).listing)
    listed += dict.fromkeys(f"{prefix}{source.file}" for source in sources.values())
    learned = [f"{prefix}{name}" for name in LEARNED_FILES]
    # A session starts no agent of the settings, and a person waits for each of its turns.
    litter = () if options.session else _litter(config, root)
    left_by_agents = [f"{prefix}{name}" for name in litter]
    return Site(
        project=project,
        repo=repo.scoped(scope) if repo else None,
        stories=stories,
        # The project, or where a link of the user's own led before any agent ran.
        within=root if real.is_relative_to(root) else real.parent,
        specs_dir=options.specs_dir.resolve() if options.specs_dir else real.parent,
        own=never_progress(prefix, [*listed, *learned, *left_by_agents], within=scope),
        litter=litter,
        env={**options.env, LANE_VARIABLE: "0"},
        is_of_session=bool(options.session),
        sources=sources,
    )


def open_repository(root: Path) -> Repository | None:
    """The git repository around the project; None without one: then less can be verified."""
    try:
        return Repository.open(root)
    except RepositoryError:
        if any((directory / ".git").exists() for directory in (root, *root.parents)):
            raise  # there is one, and something is wrong with it
        return None


def spec_of(story: Story, site: Site) -> Path | None:
    return resolve_parent_spec(story, specs_dir=site.specs_dir, repo_root=site.project.root)


def _stories(options: Options, project: Project, config: Config) -> StoryFile:
    if options.prd is not None:
        return load(options.prd)
    if options.resume and options.specs_dir is None:
        with JournalReader.open(project.journal) as journal:
            candidate = journal.resume_candidate(time.time())
        if candidate and candidate.run.prd_path.startswith(ERRANDS) and not candidate.expired:
            return load(project.root / candidate.run.prd_path)
    configured = project.root / config.stories.prd
    if options.specs_dir is None and configured.exists():
        return load(configured)
    others = ", or run a prompt without stories: --prompt FILE"
    return load(find_source(options.specs_dir or project.root, other_ways=others))


def _story_named(name: str, stories: StoryList) -> str:
    """The id that was meant: as it stands in the file, else the only one in another case."""
    if stories.get(name) is not None:
        return name
    alike = [it.id for it in stories.stories if it.id.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    known = ", ".join(story.id for story in stories.stories[:10])
    raise InputError(f"there is no story {name!r}", f"Stories: {known}.")


def _refuse_sample(stories: StoryFile, only: str | None) -> None:
    """End here where a run would build what `ralph init` wrote to show what a story looks like."""
    from ralphloop.stories.sample import sample_ids

    left = [it for it in sample_ids(story_text(stories.path).listing) if only in (None, it)]
    if not left:
        return
    are = "are" if len(left) > 1 else "is"
    raise InputError(
        f"{' and '.join(left)} {are} the sample of `ralph init`, not yours; nothing was started",
        f"Your first story replaces it: {ADD_A_STORY}. Or edit {stories.path.name}.",
        place=stories.path.name,
    )


def remarks_on(setup: Setup) -> list[str]:
    """What list and prompt file are likely to have wrong, in a few lines; of one's own words
    nothing is said."""
    from ralphloop.prompts import other_checks
    from ralphloop.stories.lint import in_brief, remarks

    found = list[str]()
    if wrong := other_checks(setup.instructions, setup.config.checks.commands):
        found.append(f"{PROMPT_NAME} {wrong}")
    if setup.stories is None or setup.site.is_errand:
        return found
    listing = story_text(setup.stories.path).listing
    return [*found, *in_brief(list(remarks(setup.stories.list, listing)))]


def read_words(path: Path, *, within: Path | None = None) -> str:
    """The text of a file that goes to an agent; InputError where it is none, or too long."""
    try:
        data = read_regular(path, most=_MOST_READ, within=within)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise unreadable(error, path) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"is not UTF-8 text (line {line})", "Save it as UTF-8.", place=str(path)
        ) from None
    if len(data) > MAX_PROMPT_BYTES:
        raise InputError(
            f"is {len(data) / MAX_PROMPT_BYTES:.1f} MB; a prompt may have 1 MB",
            "Move the bulk into files of the repository and name them in the prompt.",
            place=str(path),
        )
    if "\x00" in text:
        raise InputError("contains NUL characters; is it a text file?", place=str(path))
    return text


#
# An agent that reached its usage limit comes back when the limit has reset; one that cannot work
# at all (not logged in, no such model) is gone for the session.  Each has its own quota clock.


AgentAvailability = Mapping[str, float]  # agent -> when it may start again, or AGENT_GONE


class Worker(Value, kw_only=True):
    agent: Agent
    config: AgentSection
    is_rung: bool = False  # of the ladder: its model is part of who it is
    account: str = ""  # that it uses on another machine

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def by(self) -> str:
        return f"{self.name} {self.config.model}".rstrip()

    @property
    def clocks(self) -> AgentClocks:
        """A usage limit is the agent's; what cannot work at all is this agent with this model."""
        failing = self.by if self.is_rung else self.name
        return AgentClocks(
            of_limit=Party(self.name, self.account).name,
            of_failure=Party(failing, self.account).name,
        )


_REVIEWER = "@"  # before the name of an agent that may only doubt


def is_reviewer(argv: Sequence[str]) -> bool:
    """Whether a doubter is an agent by its name, and no command."""
    return len(argv) == 1 and argv[0].startswith(_REVIEWER)


def _reviewers(config: Config, root: Path) -> tuple[Worker, ...]:
    """Every agent that may doubt, with the settings of the run's own where it is the same."""
    from ralphloop.agents.base import load_agent

    found = []
    for argv in config.checks.doubt:
        if not is_reviewer(argv):
            continue
        name = argv[0].removeprefix(_REVIEWER)
        try:
            agent = load_agent(name, directories=agent_directories(root))
        except InputError as error:
            raise InputError(error.message, error.next_step, place="checks.doubt") from None
        own = config.agent
        if name != own.name:
            own = msgspec.structs.replace(own, name=name, model="", binary="", args=())
        found.append(Worker(agent=agent, config=own))
    return tuple(found)


class _Session:
    """The agent that is there already: the session whose hooks we are."""

    name = "claude"
    keys: Collection[str] = ()
    login = ""
    resumes = False
    paid_by_use = False

    def launch(self, request: AgentRequest) -> Launch:
        raise AgentUnavailable("a loop inside a session starts no agent", "Use `ralph run`.")

    def check(self, inquiry: Inquiry) -> list[Finding]:
        return []


def _workers(config: Config, root: Path) -> tuple[Worker, ...]:
    """The configured agent or its ladder, then the fallbacks; others start with their defaults."""
    from ralphloop.agents.base import load_agent

    first = config.agent
    folders = agent_directories(root)
    rungs = config.agent.rungs()
    known = {name for name, _ in rungs}
    others = [(name, "") for name in first.fallback if name not in known]
    return tuple(
        Worker(
            agent=load_agent(name, directories=folders),
            config=msgspec.structs.replace(first, model=model)
            if name == first.name
            else msgspec.structs.replace(first, name=name, model=model, binary="", args=()),
            is_rung=bool(first.escalate) and name in known,
        )
        for name, model in (*rungs, *others)
    )


def team(workers: Sequence[Worker], failed: int) -> list[Worker]:
    """Who is asked to work on a story after so many failed attempts, in order."""
    ladder = [worker for worker in workers if worker.is_rung]
    rest = [worker for worker in workers if not worker.is_rung]
    return [*(ladder[rung] for rung in rungs_in_order(failed, len(ladder))), *rest]


def on_accounts(workers: Iterable[Worker], places: Iterable[AgentPlaces]) -> list[Worker]:
    """Each of them once for every account that it can work with, in their order."""
    known = tuple(places)
    return [
        msgspec.structs.replace(worker, account=account)
        for worker in workers
        for account in accounts_of(worker.name, known)
    ]


def at_work(
    workers: Sequence[Worker], available_at: AgentAvailability, now: float
) -> Worker | None:
    return next((m for m in workers if 0 <= back_at(m, available_at) <= now), None)


def back_at(worker: Worker, available_at: AgentAvailability) -> float:
    """When it may start again; a time in the past is now."""
    clocks = (worker.clocks.of_limit, worker.clocks.of_failure)
    times = [available_at.get(clock, 0.0) for clock in clocks]
    return AGENT_GONE if AGENT_GONE in times else max(times)


def first_back(workers: Iterable[Worker], available_at: AgentAvailability) -> float | None:
    """When the first of them may start again; None where none ever may in this run."""
    times = (back_at(worker, available_at) for worker in workers)
    return min((it for it in times if it != AGENT_GONE), default=None)
