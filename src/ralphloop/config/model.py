"""Every setting there is, with its default: a section of `ralph.toml` is a struct, a key a field.

Types say how a value is read: a `Duration` is written "15m" and held as seconds, a `Share` is
written "20%" and held as a part of one, an `Argv` is a list or a string that is split as a shell
would, and never run by one.  Zero means "no limit" wherever something may be switched off.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, dataclass_transform

import msgspec

from ralphloop.core.grading import AskForTests, ChangedTests
from ralphloop.core.policy import ExitGate, Experiments, Limits, Mode, OnUsageLimit, Policy, Preset
from ralphloop.core.price import Price
from ralphloop.readers import NAMES

# Upper bounds keep every value printable and every timer within what the system can count.
_TEN_YEARS = 10 * 365 * 24 * 3600
_BILLION = 1_000_000_000

Duration = Annotated[float, msgspec.Meta(ge=0, le=_TEN_YEARS, extra={"form": "duration"})]
Share = Annotated[float, msgspec.Meta(ge=0, lt=1, extra={"form": "share"})]
Clock = Annotated[str, msgspec.Meta(extra={"form": "clock"})]
Argv = Annotated[tuple[str, ...], msgspec.Meta(extra={"form": "argv"})]
Commands = Annotated[tuple[tuple[str, ...], ...], msgspec.Meta(extra={"form": "commands"})]
Words = Annotated[tuple[str, ...], msgspec.Meta(extra={"form": "words"})]
Variables = Annotated[dict[str, str], msgspec.Meta(extra={"form": "variables"})]
Network = Annotated[tuple[str, ...], msgspec.Meta(extra={"form": "network"})]
# Addresses of services often are secrets: they are shown in part, and kept nowhere.
Address = Annotated[str, msgspec.Meta(extra={"form": "address"})]
Addresses = Annotated[tuple[str, ...], msgspec.Meta(extra={"form": "addresses"})]
Prices = Annotated[dict[str, Price], msgspec.Meta(extra={"form": "prices"})]
Limit = Annotated[int, msgspec.Meta(ge=0, le=_BILLION)]
Threshold = Annotated[int, msgspec.Meta(ge=1, le=_BILLION)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=_BILLION)]
Part = Annotated[float, msgspec.Meta(ge=0, le=1)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
FileName = Annotated[str, msgspec.Meta(min_length=1)]

if TYPE_CHECKING:
    Format = str
else:
    Format = Literal[tuple(name for name in NAMES if name != "auto")]  # a reader that is named
Safety = Literal["minimal", "moderate", "strict"]  # the loosest first
Baseline = Literal["strict", "tolerate"]
SealedOutput = Literal["names", "full"]
CleanTreeMode = Literal["auto", "off"]  # auto: where one can be made ready
SandboxMode = Literal["off", "auto", "on"]  # auto: where there is one; on: or no run
# In .claude/skills (skills), in .agents/skills, which other agents read (agents), in both, or in
# .claude/commands; auto: in those of the first two that are there and that somebody reads.
SkillStyle = Literal["auto", "skills", "agents", "both", "commands", "off"]
# auto: the one that the agent reads, where it is there
MemoryFile = Literal["auto", "CLAUDE.md", "AGENTS.md", "GEMINI.md", "off"]

# Variables by which somebody says that the whole machine is a sandbox.
SANDBOX_WORDS = ("IS_SANDBOX", "CLAUDE_CODE_BUBBLEWRAP")

_AGENT = r"^[a-z][a-z0-9_-]{0,40}$"
AnyAgent = Annotated[str, msgspec.Meta(pattern=_AGENT)]
Fallbacks = Annotated[tuple[AnyAgent, ...], msgspec.Meta(extra={"form": "words"})]
Rung = Annotated[str, msgspec.Meta(pattern=r"^\S+$")]  # a model, or agent:model
Ladder = Annotated[tuple[Rung, ...], msgspec.Meta(extra={"form": "words"})]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections."""


_TAKES_A_BUDGET = "claude"  # with --max-budget-usd


class AgentSection(Section):
    name: AnyAgent = "claude"
    command: Argv = ()  # needed where the name is "command"
    # how its output is read
    format: Format = "text"
    model: str = ""
    binary: str = ""  # path of the CLI; empty: found on PATH
    args: Argv = ()  # appended to our command line
    env: Variables = {}  # added to the agent's environment
    pass_env: Words = ()  # passed through although we would drop them
    context: Literal["fresh", "resume"] = "fresh"
    safety: Safety = "moderate"
    allow: Words = ()  # more that it may do without asking, such as tools of MCP servers
    ask_for_status: bool = True  # once, where an answer has no status block
    fallback: Fallbacks = ()
    escalate: Ladder = ()  # instead of a model: from cheap to dear, a failed attempt leads up

    @property
    def models(self) -> str:
        """The model, or the whole ladder, in words."""
        return " → ".join(self.escalate) or self.model

    @property
    def keeps_to_budget(self) -> bool:
        """Whether each agent that may be started can be told how much money it may spend."""
        names = (*(rung.agent for rung in self.rungs()), *self.fallback)
        return all(name == _TAKES_A_BUDGET for name in names)

    def rungs(self) -> list["AgentRung"]:
        """Agent and model of each rung; without a ladder it is one."""
        found = []
        for words in self.escalate:
            name, colon, model = words.partition(":")
            if colon and re.match(_AGENT, name):
                found.append(AgentRung(name, model))
            else:
                found.append(AgentRung(self.name, words))
        return found or [AgentRung(self.name, self.model)]


class AgentRung(NamedTuple):
    """One step of a ladder of models."""

    agent: str
    model: str


_USUAL = Policy()


class ChecksSection(Section):
    commands: Commands = ()
    timeout: Duration = 15 * 60.0
    baseline: Baseline = "strict"
    doubt: Commands = ()  # each may only doubt a green story: exit code 1, with words


class ProofSection(Section):
    experiments: Experiments = _USUAL.experiments  # tests run crosswise
    changed_tests: ChangedTests = _USUAL.changed_tests
    ask_for_tests: AskForTests = _USUAL.ask_for_tests
    clean_tree: CleanTreeMode = "auto"  # judge on what a fresh clone would have
    sealed_output: SealedOutput = "names"  # what is told of sealed tests that fail


class LimitsSection(Section):
    max_iterations: Limit = 50
    max_cost_usd: Amount = 0.0
    max_tokens: Limit = 0  # without cache reads; holds where no price is known
    # of one start, while it runs; without them: what is left to the run, divided by its lanes
    max_start_cost_usd: Amount = 0.0
    max_start_tokens: Limit = 0
    max_time: Duration = 10 * 3600.0
    calls_per_hour: Limit = 100
    iteration_timeout: Duration = 60 * 60.0
    stall_timeout: Duration = 10 * 60.0
    max_attempts: Limit = 3
    max_story_share: Part = 0.5  # of the limits above, while another story could run
    reserve: Share = 0.0  # of each usage window, left for the person
    until: Clock = ""  # a time of day at which a session ends
    on_usage_limit: OnUsageLimit = "wait"
    backoff: Duration = 5.0  # after the first outage; doubles with each, at most 5 minutes


class PricesSection(Section):
    """Rows by a model's name; `[prices."name"]` is written for `[prices.models."name"]`."""

    models: Prices = {}  # before the rows of a person's own table, and ours


class CircuitSection(Section):
    preset: Preset = _USUAL.preset
    no_progress_threshold: Threshold = _USUAL.no_progress_threshold
    same_error_threshold: Threshold = _USUAL.same_error_threshold
    output_decline_percent: Percent = _USUAL.output_decline_percent
    cooldown_minutes: Amount = _USUAL.cooldown_minutes  # 0: manual reset only
    test_saturation: Limit = _USUAL.test_saturation
    treading_window: Limit = _USUAL.treading_window
    treading_lines: Limit = _USUAL.treading_lines
    stuck_same_error: Limit = _USUAL.stuck_same_error
    stuck_same_reply: Limit = _USUAL.stuck_same_reply
    stuck_alternation: Limit = _USUAL.stuck_alternation
    stuck_revisits: Limit = _USUAL.stuck_revisits
    interim_checks: Limit = _USUAL.interim_checks


class ExitSection(Section):
    gate: ExitGate = _USUAL.exit_gate


class GitSection(Section):
    commit: Literal["story", "never"] = "story"
    # what is measured, committed and cleaned up; what lies beside a project is somebody else's
    scope: Literal["repository", "project"] = "repository"
    patience: Duration = 600.0  # with a lock of git's, or a git that is killed; then the run ends
    pr: Literal["run", "story"] = "run"  # what `ralph pr` opens one for
    follow_rounds: Limit = 3  # of work on a followed pull request, `ralph pr --follow`
    follow_every: Duration = 30.0  # how often it is looked at meanwhile


class LanesSection(Section):
    count: Limit = 0  # stories at once, each in a work tree of its own; 0: in the checkout
    setup: Commands = ()  # what makes a fresh work tree ready, such as npm ci
    copy: Words = ()  # ignored paths that are brought along, such as .env
    where: str = ""  # the directory of the lanes; empty: beside the repository
    train: Threshold = 1  # green stories judged at once, to land in order


class FleetSection(Section):
    # HOST:PORT of a Temporal server, or ssh:host1,host2; empty: every lane works on this machine
    server: str = ""
    remote: str = "origin"  # where orders and reports are pushed to
    repository: str = ""  # what workers call it; empty: by the remote's address
    lease: Duration = 30.0  # an agent elsewhere is stopped after so long without a word
    namespace: str = "default"  # of Temporal, as the following
    tls: bool = False
    tls_ca: str = ""  # files
    tls_cert: str = ""
    tls_key: str = ""
    api_key: str = ""  # the name of the variable that holds it
    codec_key_file: str = ""  # what goes through the server is encrypted with the keys in it
    codec_key: str = ""  # or: the name of the variable that holds them
    ssh: Argv = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5")
    program: Argv = ("ralph",)  # how ralph is started over there
    # Of a machine that works for others; only a person's own settings are heard.
    repos: Variables = {}  # which repositories, by name, and where they are fetched from
    slots: Threshold = 1  # orders at once
    labels: Words = ()  # what it has, such as gpu
    account: str = ""  # a label for the account its agents use; empty: by their login, if that says
    where: str = ""  # the directory of its clones; empty: ~/.local/share/ralph-fleet


class SandboxSection(Section):
    mode: SandboxMode = "off"
    network: Network = ("open",)  # open, none, or the addresses that can be reached: "host:port"
    write: Words = ()  # directories besides the work tree, such as caches
    hide: Words = ()  # besides keys, browsers, other projects and what ralph keeps of its own
    # the agent does not commit, ralph does; or it does, and hooks and configuration are guarded
    git: Literal["read-only", "guarded"] = "read-only"


class StoriesSection(Section):
    prd: FileName = "prd.json"
    accept_found: bool = False  # what agents find becomes a story without a person's yes
    max_found: Limit = 3  # of those in one run
    write_back: bool = False  # set a passed story's mark also in the list it was read from
    queue: Argv = ()  # where items come from: "github:label=ralph", or a program of yours
    queue_every: Duration = 60.0  # how often `ralph run --watch` looks there


class SessionSection(Section):
    on_end: Argv = ()  # a command that is told how a run ended, as JSON; or "pr", `ralph pr`
    keep_awake: bool = True


class LearningSection(Section):
    enabled: bool = True
    budget_tokens: Limit = 800  # what learnings may add to a prompt; 0: nothing
    every: Limit = 5  # stories between two aggregations
    memory: MemoryFile = "auto"  # where the digest of patterns goes
    skills: SkillStyle = "auto"
    holdout: Limit = 5  # one story in so many, at random, runs without, for comparison; 0: none
    ask_agent: bool = False  # for what it learned, instead of inviting it to say so


class NotifySection(Section):
    desktop: bool = False  # a bubble on the screen of this machine
    command: Argv = ()  # gets each message as JSON on its input
    urls: Addresses = ()  # of services, as apprise writes them: "ntfys://topic", "slack://…"
    webhook: Address = ""  # an address that gets each message as a JSON POST
    webhook_private: bool = False  # the address may be on this machine or a private network
    most: Threshold = 6  # messages a run, its end included


class Config(Section):
    agent: AgentSection = AgentSection()
    checks: ChecksSection = ChecksSection()
    proof: ProofSection = ProofSection()
    limits: LimitsSection = LimitsSection()
    prices: PricesSection = PricesSection()
    circuit: CircuitSection = CircuitSection()
    exit: ExitSection = ExitSection()
    git: GitSection = GitSection()
    lanes: LanesSection = LanesSection()
    fleet: FleetSection = FleetSection()
    sandbox: SandboxSection = SandboxSection()
    stories: StoriesSection = StoriesSection()
    session: SessionSection = SessionSection()
    learning: LearningSection = LearningSection()
    notify: NotifySection = NotifySection()


SECTIONS = Config.__struct_fields__


class Setting(msgspec.Struct, frozen=True):
    section: str
    key: str
    kind: object  # the annotated type
    default: object

    @property
    def form(self) -> str:
        """How a value is written where that differs from how it is held."""
        metas = getattr(self.kind, "__metadata__", ())
        return next((str(meta.extra["form"]) for meta in metas if meta.extra), "")


@cache
def settings() -> dict[str, Setting]:
    """Every setting by its dotted name, in the order of the documentation."""
    found = {}
    for section in msgspec.structs.fields(Config):
        for field in msgspec.structs.fields(section.type):
            default = getattr(section.default, field.encode_name)
            place = (section.encode_name, field.encode_name)
            found[".".join(place)] = Setting(*place, field.type, default)
    return found


def policy_of(config: Config, *, mode: Mode = "script") -> Policy:
    limits = (name for name in Limits.__struct_fields__ if hasattr(config.limits, name))
    return Policy(
        **msgspec.structs.asdict(config.circuit),
        exit_gate=config.exit.gate,
        limits=Limits(**{name: getattr(config.limits, name) for name in limits}),
        ask_for_status=config.agent.ask_for_status,
        experiments=config.proof.experiments,
        changed_tests=config.proof.changed_tests,
        ask_for_tests=config.proof.ask_for_tests,
        doubts=bool(config.checks.doubt),
        commits=config.git.commit == "story",
        on_usage_limit=config.limits.on_usage_limit,
        mode=mode,
    )
