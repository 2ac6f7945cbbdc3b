"""Which lines of a repository can run a program or loosen safety, and who has said yes to them.

A *grant* is one such line: a setting of `ralph.toml`, a line of a declared agent that is used, a
story's `verify` command.  A run needs all of its grants in the *record*, which is outside of the
repository.

A setting is one unless it is in `HARMLESS`, or is no looser than what would hold without the file:
our default, or the person's own setting.  So a new one asks until somebody has thought about it.

A `verify` command that runs nothing but code of the work tree (`own_code`) is no grant where
something trusted runs such code already.
"""

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ralphloop.config.load import LoadedConfig
from ralphloop.config.model import Config, settings
from ralphloop.config.strictness import has_direction, is_looser
from ralphloop.config.values import line_to_agree_to, toml_line, toml_value
from ralphloop.core.model import Story
from ralphloop.errors import NotTrusted
from ralphloop.own_code import is_written_inside, leads_out, reaches_code_of, runs_code_of
from ralphloop.project import CONFIG_NAME, agent_directories, relative
from ralphloop.room import common_place, file_of, read_regular, read_state, write_state

TRUST_VARIABLE = "RALPH_TRUST"
YES = "1"
_MOST_KEPT = 2_000
_LARGEST_DECLARATION = 256 * 1024
_VERIFY = "verify"

# Words, and how something is done: nothing that runs, nothing that opens a door or lifts a limit.
HARMLESS = frozenset(
    "git learning agent.name agent.format agent.model agent.context agent.ask_for_status"
    " session.keep_awake notify.desktop notify.most lanes.count lanes.train limits.backoff".split()
)
_STORY_FILE = "stories.prd"
_LINK = "link"


class Grant(msgspec.Struct, frozen=True):
    origin: str  # the file it stands in
    name: str
    shown: str  # the line as it would be written
    tree: bool = False  # it runs code of the work tree
    instead: str = ""  # what would hold without the line, where that is stricter

    @property
    def digest(self) -> str:
        """Its fingerprint; a story's command is the same in whichever file it stands."""
        origin = "" if self.name == _VERIFY else self.origin
        return hashlib.sha256(repr((origin, self.name, self.shown)).encode()).hexdigest()

    @property
    def is_place(self) -> bool:
        """It leads to a story file that lies outside of the project."""
        return self.name in (_STORY_FILE, _LINK)

    def runs(self, argv: Sequence[str]) -> bool:
        return self.name == _VERIFY and self.shown == _verify_line(argv)


class TrustRecord(msgspec.Struct, frozen=True):
    """Everything a person has agreed to in one repository; what could be a secret is not kept."""

    place: str = ""
    grants: dict[str, Grant] = {}  # by digest, the oldest first

    def new(self, grants: Iterable[Grant]) -> list[Grant]:
        return [grant for grant in grants if grant.digest not in self.grants]

    def before(self, grant: Grant) -> str:
        """What the same line said when it was agreed to last; empty for a new one."""
        place = (grant.origin, grant.name)
        same = [one.shown for one in self.grants.values() if (one.origin, one.name) == place]
        return same[-1] if same and grant.name != _VERIFY else ""


def said_yes(env: Mapping[str, str], given: str = "") -> str:
    """A yes on the command line or in the environment: to all, or to lines with this hash."""
    return given or env.get(TRUST_VARIABLE, "")


def load_record(root: Path, env: Mapping[str, str]) -> TrustRecord:
    """What was agreed to here; nothing where no record can be read."""
    data = read_state(file_of("trust", common_place(root), env))
    try:
        return msgspec.json.decode(data or b"{}", type=TrustRecord)
    except msgspec.DecodeError:
        return TrustRecord()  # then it is asked anew


def agree(root: Path, env: Mapping[str, str], grants: Iterable[Grant]) -> None:
    from ralphloop.redaction import redact

    place = common_place(root)
    known = dict(load_record(root, env).grants)
    for grant in grants:
        known.pop(grant.digest, None)  # the newest last
        known[grant.digest] = msgspec.structs.replace(grant, shown=redact(grant.shown))
    kept = dict(list(known.items())[-_MOST_KEPT:])
    data = msgspec.json.encode(TrustRecord(str(place), kept))
    write_state(file_of("trust", place, env), data)


def revoke(root: Path, env: Mapping[str, str]) -> bool:
    path = file_of("trust", common_place(root), env)
    if path is None or read_state(path) is None:
        return False
    path.unlink()
    return True


def pin_of(grants: Iterable[Grant]) -> str:
    """One word for exactly these lines, whatever their order."""
    lines = sorted(grant.digest for grant in grants)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def missing(
    grants: Sequence[Grant], root: Path, env: Mapping[str, str], given: str = ""
) -> list[Grant]:
    """What still needs a yes; `given` stands for one on the command line, as RALPH_TRUST does."""
    given = said_yes(env, given)
    if given == YES or not grants:
        return []
    if given:
        return [] if given.lower() == pin_of(grants) else list(grants)
    return load_record(root, env).new(grants)


def not_trusted(
    grants: Sequence[Grant], lacking: Sequence[Grant], given: str = "", agent: str = ""
) -> NotTrusted:
    """What ends a run that nobody can be asked about; `agent` was named on the command line."""
    command = f"ralph trust --agent {agent}" if agent else "ralph trust"
    names = list(dict.fromkeys(f"{one.origin}: {one.name}" for one in lacking))
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    pin = pin_of(grants)
    if given and given != YES:
        return NotTrusted(
            f"the settings of this repository are not those that were pinned ({given[:40]})",
            f"Look at them with `{command} --show`; these would be --trust={pin}",
        )
    return NotTrusted(
        "settings of this repository can run programs or loosen safety, and nobody here said yes"
        f" ({', '.join(names[:4])}{more}); nothing was started",
        f"Look at them and say yes: {command}. In a script: ralph run --trust={pin}",
    )


def handed_on(loaded: LoadedConfig) -> tuple[str, ...]:
    """What the repository passes to the agent, for the start of a run: one line, and refusals."""
    agent = loaded.config.agent
    parts = []
    for name, words in {
        "binary": f"binary {agent.binary}",
        "command": f"command {shlex.join(agent.command)}",
        "args": f"args {' '.join(agent.args)}",
        "env": f"variables {', '.join(agent.env)}",
        "pass_env": f"keys {', '.join(agent.pass_env)}",
        "allow": f"allow {', '.join(agent.allow)}",
    }.items():
        if loaded.origins[f"agent.{name}"] == CONFIG_NAME and getattr(agent, name):
            parts.append(words[:200])
    line = f"from {CONFIG_NAME} for the agent: {'; '.join(parts)}"
    return (*loaded.notes, *([line] if parts else ()))


def grants_of(
    loaded: LoadedConfig, root: Path, stories: Iterable[Story] = (), source: Path | None = None
) -> tuple[Grant, ...]:
    """Every line of the repository, as it is in force now, that needs a yes."""
    found = [*_of_settings(loaded, root), *_of_agents(loaded.config, root)]
    if source is not None:
        found += _of_link(root, source)
        origin = relative(source, root) if not source.is_symlink() else source.name
        for argv in (it.verify for it in stories if it.verify and not it.passes):
            found.append(Grant(origin, _VERIFY, _verify_line(argv), runs_code_of(root, argv)))
    runs_tree = any(grant.tree for grant in found if grant.name != _VERIFY)
    runs_tree |= any(reaches_code_of(root, argv) for argv in loaded.config.checks.commands)
    lines = (it for it in found if not (runs_tree and it.tree and it.name == _VERIFY))
    return tuple(dict.fromkeys(lines))


def insist_on_place(loaded: LoadedConfig, root: Path, source: Path, env: Mapping[str, str]) -> None:
    """End here where a repository leads to a story file elsewhere that nobody has agreed to."""
    ways = [one for one in _of_settings(loaded, root) if one.is_place]
    refuse_places(missing([*ways, *_of_link(root, source)], root, env))


def refuse_places(lacking: Iterable[Grant]) -> None:
    """End here if one of these leads to a story file elsewhere."""
    place = next((one for one in lacking if one.is_place), None)
    if place is None:
        return
    words = f"is a link {place.shown}" if place.name == _LINK else f"says {place.shown}"
    raise NotTrusted(
        f"{place.origin} {words}, which is outside of this project; it was not followed",
        "Look at it and say yes: ralph trust",
    )


def _of_settings(loaded: LoadedConfig, root: Path) -> Iterator[Grant]:
    """The settings of the repository that run something, or loosen what would hold without it."""
    for name, setting in settings().items():
        if loaded.origins[name] != CONFIG_NAME or {name, setting.section} & HARMLESS:
            continue
        wanted = getattr(getattr(loaded.config, setting.section), setting.key)
        holds = getattr(getattr(loaded.without, setting.section), setting.key)
        if not is_looser(name, holds, wanted):
            continue
        if name == _STORY_FILE and is_written_inside(root, Path(wanted)):
            continue
        tree = name == "checks.commands" and any(reaches_code_of(root, argv) for argv in wanted)
        line = f"{setting.section}.{line_to_agree_to(setting, wanted)}"
        instead = toml_line(setting, holds) if has_direction(name) else ""
        yield Grant(CONFIG_NAME, name, line, tree, instead.partition(" = ")[2])


def _of_link(root: Path, source: Path) -> Iterator[Grant]:
    """A story file that is written as one of the project and lies elsewhere."""
    real = leads_out(root, Path.cwd() / source)
    if real is not None:
        yield Grant(source.name, _LINK, f"→ {real}")


def may_verify(
    argv: Sequence[str],
    root: Path,
    env: Mapping[str, str],
    checks: Iterable[Sequence[str]],
    given: str = "",
) -> bool:
    """Whether a `verify` command that stands in the story file by now may be run."""
    if said_yes(env, given) == YES:
        return True
    record = load_record(root, env)
    trusted = any(grant.tree for grant in record.grants.values())
    trusted = trusted or any(reaches_code_of(root, one) for one in checks)
    if trusted and runs_code_of(root, argv):
        return True
    return Grant("", _VERIFY, _verify_line(argv)).digest in record.grants


def _verify_line(argv: Sequence[str]) -> str:
    return f"{_VERIFY} = {toml_value(tuple(argv))}"


def _of_agents(config: Config, root: Path) -> Iterator[Grant]:
    rungs = (name for name, _ in config.agent.rungs())
    doubters = (argv[0][1:] for argv in config.checks.doubt if argv[0].startswith("@"))
    for name in dict.fromkeys([*rungs, *config.agent.fallback, *doubters]):
        files = (place / f"{name}.toml" for place in agent_directories(root))
        file = next((path for path in files if path.exists()), None)
        if file is not None:
            try:
                text = read_regular(file, most=_LARGEST_DECLARATION).decode("utf-8", "replace")
            except OSError as error:
                text = f"cannot be read: {error.strerror}"  # which ends a run that would use it
            lines = [line for line in map(str.rstrip, text.splitlines()) if line.strip()]
            for number, line in enumerate(lines, 1):
                yield Grant(relative(file, root), f"line {number}", line)
