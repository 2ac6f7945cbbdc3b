"""What a run is confined to: the boxes of its agents, of its checks and of git.

An agent writes three things that we would run with a person's rights: its own commands, the checks
and the hooks and filters of git.  They write in the work tree and in the caches of the settings,
none to `.ralph`, and only git to its own directory, all but what makes it start programs.  Keys,
browsers, other projects and what ralph keeps elsewhere are not there, nor, for checks and git, what
agents keep in the home directory.  In a session the agent is there already, outside of our boxes.

We ourselves are not confined, so nothing that could be written in a box is run, imported or obeyed
by us: programs come from elsewhere (`proc.programs`), what ralph itself is made of is read-only
where it lies in the project's own environment, and so are settings of git that lie in the tree.
"""

import atexit
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.agents.declared import declared_homes
from ralphloop.agents.environment import API_KEYS, find_program, outer_sandbox
from ralphloop.config.model import Config, SandboxMode
from ralphloop.errors import InputError, RalphError, RepositoryError
from ralphloop.loop.prepare import Setup, Site, Worker
from ralphloop.proc import programs, sandbox
from ralphloop.proc.run import run_command
from ralphloop.proc.sandbox import NONE, OPEN, Box, plan
from ralphloop.project import RALPH_DIR, Project
from ralphloop.repo.inner import gitlinks
from ralphloop.repo.settings import obeyed_in_tree
from ralphloop.repo.work_tree import Repository
from ralphloop.room import state_directory

Env = Mapping[str, str]
# Below the home directory: keys, logins and histories, browsers, engines that start anything.
_KEYS = (
    ".ssh .gnupg .aws .azure .kube .docker .config/gh .config/hub .config/gcloud .config/op"
    " .config/rclone .config/sops .password-store .local/share/keyrings .vault-token .netrc"
    " .git-credentials .config/git/credentials .pypirc .terraform.d .config/containers"
    " .bash_history .zsh_history .python_history .psql_history .node_repl_history"
    # package registries
    " .npmrc .yarnrc.yml .cargo/credentials .cargo/credentials.toml .m2/settings.xml"
    " .m2/settings-security.xml .gradle/gradle.properties .gem/credentials .bundle/config"
    " .composer/auth.json .config/composer/auth.json .config/pip .pip"
    # databases, clouds, code hosts, models
    " .pgpass .my.cnf .mylogin.cnf .config/doctl .config/hcloud .config/linode-cli .fly .oci"
    " .ibmcloud .s3cfg .boto .databrickscfg .snowsql .config/stripe .config/netlify .vercel"
    " .local/share/com.vercel.cli .subversion/auth .config/github-copilot .config/glab-cli"
    " .config/tea .kaggle .cache/huggingface/token .huggingface/token"
    # passwords, mail, what was typed, and what ralph is told by the person
    " .config/keepassxc .config/1Password .authinfo .authinfo.gpg .msmtprc .mbsyncrc"
    " .local/share/fish/fish_history .mysql_history .sqlite_history .rediscli_history"
    " .irb_history .config/ralph"
).split()
_BROWSERS = (
    ".mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware"
    " .config/microsoft-edge .config/vivaldi .config/opera .cache/mozilla .cache/google-chrome"
    " .cache/chromium snap/firefox snap/chromium .var/app .librewolf .cache/librewolf"
    " .config/Slack .config/discord .config/Signal"
).split()
_ENGINES = ".colima .lima .orbstack .rd .minikube .local/share/containers".split()
_NEEDED = ("/run/current-system", "/run/opengl-driver", "/run/wrappers", "/run/nscd")
_GIT_STARTS = ("config", "config.worktree", "commondir", "gitdir", "hooks", "info", "modules")
_MOST_SIBLINGS = 400
_TRY_S = 20.0
_FIRST_FREE = 1024  # port that anybody may listen on
_INSTALL = "apt install bubblewrap; dnf and pacman call it the same (Linux only)"
_APART = "install ralph on its own: pipx install ralphloop, or uv tool install ralphloop"
# What is imported late, so that a start is quick.
_CUSTOMS = ("sitecustomize", "usercustomize")
_NEEDED_MODULES = (
    "click",
    "jinja2",
    "junitparser",
    "msgspec",
    "psutil",
    "rich",
    "ruamel",
    "textual",
)
_UNCONFINED = (
    "No sandbox: the agent, the checks and git's hooks can read and change everything you can ({})"
)
_KERNEL = (
    "let this user make namespaces (AppArmor: kernel.apparmor_restrict_unprivileged_userns;"
    " in a container: start it with --security-opt seccomp=unconfined or use the container alone)"
)


class ConfinedSite(NamedTuple):
    site: Site
    words: str  # what is confined and what is not


def confine(setup: Setup) -> Setup:
    """The same with boxes around the checkout's agents, checks and hooks, or with the reason."""
    found = confine_site(setup, setup.site)
    return msgspec.structs.replace(setup, site=found.site, confined=found.words)


def confine_site(setup: Setup, site: Site, *, objects: Sequence[Path] = ()) -> ConfinedSite:
    """A place with its boxes, or without and with the reason; raises where that will not do.

    `objects` are directories outside of it in which its repository finds objects.
    """
    config = setup.config
    mode, why = wanted(config, setup.options.env)
    if mode == "off":
        return ConfinedSite(site, _UNCONFINED.format(why or "[sandbox] mode"))
    by_hook = bool(setup.options.session)
    try:
        plans = _Plans(config, site.project, site.repo, site.env, objects=objects)
        workers = () if by_hook else setup.workers
        boxes = {it.name: plans.agent(it) for it in (*setup.reviewers, *workers)}
        checks = _tried(plans.checks(), site.project.root)
        git = plans.git()
        written = (it for box in (*boxes.values(), checks, git) for it in box.writable)
        programs.distrust(written, confining=True)
        own_words = plans.keep_ourselves_apart()
    except NoSandbox as error:
        if mode == "on":
            words = f"{why} needs a sandbox, and none works here: {error.message}"
            raise RepositoryError(words, error.next_step) from None
        return ConfinedSite(site, _UNCONFINED.format(error.message))
    _open_relay(checks)
    section = config.sandbox
    guarded = config.sandbox.git == "guarded"
    repo = site.repo.confined(git, guarded=guarded) if site.repo else None
    who = "the checks and git's hooks" if by_hook else "the agent, the checks and git's hooks"
    places = " ".join(["the work tree", *section.write])
    kept = ".git and .ralph" if section.git == "read-only" else "git's settings and .ralph"
    network = {OPEN: "open", NONE: "closed"}.get(section.network) or " ".join(section.network)
    rest = "; no sandbox for the agent, which is this session" if by_hook else ""
    words = (
        f"confined: {who} write only in {places}, never {kept}; keys and other projects are hidden;"
        f" network: {network}{rest}{own_words}"
    )
    boxed = msgspec.structs.replace(site, repo=repo, agent_boxes=boxes, check_box=checks)
    return ConfinedSite(boxed, words)


def read_only(box: Box, site: Site) -> Box:
    """The box of an agent that only looks: neither the work tree nor git's own may be written."""
    repo = site.repo
    root = repo.root if repo and not repo.scope else site.project.root
    shut = [root, *((repo.git_dir, repo.common_dir) if repo else ())]
    own = site.project.directory / "agent"
    places = dict(box.places)
    for name, kind in box.places.items():
        path = Path(name)
        is_shut = path != own and any(path.is_relative_to(place) for place in shut)
        if kind is sandbox.Place.WRITE and is_shut:
            places[name] = sandbox.Place.READ
    return msgspec.structs.replace(box, places=places)


def box_of_commands(setup: Setup) -> Box:
    """The box of checks, for commands of the settings; raises `NoSandbox`."""
    if setup.site.check_box is not None:
        return setup.site.check_box
    plans = _Plans(setup.config, setup.project, setup.repo, setup.options.env)
    box = plans.checks()
    _open_relay(box)
    return box


def confined_repository(project: Project, config: Config, root: Path | None = None) -> Repository:
    """The repository for a command between runs, confined as the run with these settings was.

    `root` is another work tree of it: a lane.
    """
    repo = Repository.open(root or project.root)
    mode = wanted(config, os.environ).mode
    if mode == "off":
        return repo
    place = Project(root, project.root) if root else project
    try:
        box = _Plans(config, place, repo, os.environ, looking=True).git()
        programs.distrust(box.writable, confining=True)
        _tried(box, repo.root)
    except NoSandbox as error:
        if mode == "on":
            words = f"git's hooks are to run in a sandbox, and none works here: {error.message}"
            raise RepositoryError(words, error.next_step) from None
        return repo
    return repo.confined(box, guarded=config.sandbox.git == "guarded")


def confined_checks(project: Project, config: Config, repo: Repository) -> Box | None:
    """The box in which checks run between runs, as in the run with these settings; None: none."""
    mode = wanted(config, os.environ).mode
    if mode == "off":
        return None
    try:
        box = _tried(_Plans(config, project, repo, os.environ).checks(), project.root)
    except NoSandbox as error:
        if mode == "on":
            words = f"checks are to run in a sandbox, and none works here: {error.message}"
            raise RepositoryError(words, error.next_step) from None
        return None
    programs.distrust(box.writable, confining=True)
    _open_relay(box)
    return box


class NoSandbox(RalphError):
    """None works on this machine."""


class Wanted(NamedTuple):
    """Whether there has to be a sandbox, and who says so."""

    mode: SandboxMode
    why: str = ""


def wanted(config: Config, env: Env) -> Wanted:
    """What the settings ask for; a machine that is a sandbox itself needs none for `strict`."""
    mode = config.sandbox.mode
    if mode == "on":
        return Wanted(mode, 'sandbox.mode = "on"')
    if config.agent.safety != "strict":
        return Wanted(mode)
    if word := outer_sandbox({**env, **config.agent.env}):
        return Wanted(mode, f"{word}=1 says that this machine is a sandbox")
    return Wanted("on", 'safety = "strict"')


def _tried(box: Box, cwd: Path) -> Box:
    """The same box, which works here; raises `NoSandbox` where it does not."""
    trial = msgspec.structs.replace(box, network=NONE if box.network != OPEN else OPEN, relay="")
    try:
        argv, env = trial.start(["true"], cwd, os.environ)
        ended = run_command(argv, env=env, timeout_s=_TRY_S)
    except OSError as error:
        raise NoSandbox(str(error), _INSTALL) from None
    if ended.returncode == 0:
        return box
    said = ended.said.splitlines()[:1] or [f"bwrap ended with {ended.returncode}"]
    raise NoSandbox(said[0][:200], _KERNEL)


def _open_relay(box: Box) -> None:
    """Begin to answer for the addresses that can be reached; all boxes share it."""
    if not box.relay:
        return
    from ralphloop.proc.relay import outside

    Path(box.relay, "hosts").write_text(sandbox.hosts_file(box.network), "utf-8")
    outside(box.relay, [(it.host, it.port) for it in sandbox.listeners(box.network)])
    atexit.register(shutil.rmtree, box.relay, ignore_errors=True)


def working_box(config: Config, project: Project, repo: Repository | None, env: Env) -> Box:
    """The box of checks, for whoever only wants to try it; raises `NoSandbox`."""
    return _tried(_Plans(config, project, repo, env, looking=True).checks(), project.root)


def _named_files(command: Iterable[str]) -> list[Path]:
    """The files that a command of the settings names by their whole path, such as its script."""
    named = (Path(word) for word in command if word.startswith("/"))
    return [path for path in named if path.is_file()]


class _GitPlaces(msgspec.Struct, kw_only=True, frozen=True):
    """What is git's own, for one box."""

    guarded: list[Path]  # it stays as it is
    writable: list[Path] = msgspec.field(default_factory=list)
    absent: tuple[str, ...] = ()  # it must not come into being


class _Plans:
    def __init__(
        self,
        config: Config,
        project: Project,
        repo: Repository | None,
        env: Env,
        *,
        looking: bool = False,  # and nothing is made
        objects: Sequence[Path] = (),  # of other repositories, which git reads here
    ) -> None:
        self._repo = repo
        self._env = env
        self._keys = frozenset(API_KEYS.difference(config.agent.pass_env))
        self._section = config.sandbox
        self._checks = config.checks.commands
        self._own_directory = project.directory
        self._home = Path(env.get("HOME") or "/").resolve()
        whole = repo is not None and not repo.scope
        self._root = (repo.root if repo and whole else project.root).resolve()
        relayed = not looking and self._section.network not in (OPEN, NONE)
        self._relay = tempfile.mkdtemp(prefix="ralph-") if relayed else ""
        # What programs are made of, and names of hosts, wherever they lie.
        named = (*_NEEDED, *env.get("PATH", "").split(":"), sys.prefix, sys.base_prefix)
        self._seen = [self._home, *map(Path, named), Path(__file__).parents[1], *objects]
        if self._section.network == OPEN:
            self._seen.append(Path("/etc/resolv.conf").resolve())
        self._caches = [*map(self._expand, self._section.write)]
        for path, word in zip(self._caches, self._section.write, strict=True):
            if self._home.is_relative_to(path):
                raise InputError(
                    f"{word} would let everything be written",
                    "Name the directory that a check needs.",
                    place="sandbox.write",
                )
            if not looking and not path.exists():
                path.mkdir(parents=True)
        programs.distrust([self._root, *self._caches])
        self._program = _bubblewrap(env)
        self._own = self._own_places()
        self._obeyed = obeyed_in_tree(repo, self._home) if repo else None
        if self._obeyed and self._obeyed.problem:
            raise NoSandbox(self._obeyed.problem, self._obeyed.fix)
        self._lane_room = project.root / RALPH_DIR  # of a lane: its lock
        self._modules = programs.module_places(self._own)
        self._customs = [*self._run_by_python()]

    def _own_places(self) -> list[Path]:
        """What ralph itself is made of, as far as it lies where agents write."""
        own = [it for it in programs.own_places() if programs.is_distrusted(it)]
        for place in own:
            if links := programs.links_to(place):
                raise NoSandbox(
                    f"ralph itself runs from {place}, and an agent could exchange {links[0]}",
                    _APART,
                )
            for path, word in zip(self._caches, self._section.write, strict=True):
                if path.is_relative_to(place):
                    raise InputError(
                        f"{word} would let ralph itself be rewritten, which runs from {place}",
                        _APART,
                        place="sandbox.write",
                    )
        return [Path(it) for it in own]

    def keep_ourselves_apart(self) -> str:
        """Import nothing any more that agents could write; what is to be said of it, in words."""
        programs.import_nothing_from(self._modules)
        for name in _NEEDED_MODULES:
            spec = importlib.util.find_spec(name)
            origin = spec.origin if spec else None
            is_ours = origin is not None and any(Path(origin).is_relative_to(p) for p in self._own)
            if spec is None or (origin and programs.is_distrusted(origin) and not is_ours):
                raise NoSandbox(f"{name}, a part of ralph, is loaded from the work tree", _APART)
        words = ""
        if self._own:
            words += (
                f"; {min(map(str, self._own), key=len)} is read-only, because ralph itself runs"
                f" from it: to let agents install there, {_APART}"
            )
        if self._modules.named:
            words += (
                f"; Python finds modules in {self._modules.named[0]} (PYTHONPATH, or python -m):"
                " ralph loads none from there any more, but its next start would"
            )
        return words

    def _run_by_python(self) -> Iterator[Path]:
        """What Python itself runs at the next start of ralph, where the project is installed."""
        for place in self._modules.installed:
            for name in _CUSTOMS:
                yield Path(place, name)
                yield from (Path(place, f"{name}{it}") for it in importlib.machinery.all_suffixes())

    def checks(self) -> Box:
        """Nothing of git's may be written, and no key of an agent is there."""
        show = [path for command in self._checks for path in _named_files(command)]
        return self._box(self._git_places(), show=show, withheld=self._keys)

    def git(self) -> Box:
        """The same, but git writes in its own directory all that does not make it start things."""
        git = self._git_writes()
        objects = [self._own_directory / "objects"]
        return self._box(git.guarded, git.writable, objects, absent=git.absent, withheld=self._keys)

    def agent(self, worker: Worker) -> Box:
        """What the agent's own program keeps in the home directory is there, mostly read-only."""
        declared = getattr(worker.agent, "it", None)
        kept = [*map(self._expand, declared.home)] if declared else []
        writes = [*map(self._made, declared.writes)] if declared else []
        guards = [*map(self._expand, declared.guards)] if declared else []
        if worker.name == "scripted":
            writes.append(
                self._made(f"{self._own_directory}/agent/")
            )  # which line of the script is next
        named = (declared.program,) if declared else worker.config.command[:1]
        program = find_program(worker.config.binary or "".join(named), self._env, self._root)
        writing = self._section.git == "guarded"
        git = self._git_writes() if writing else _GitPlaces(guarded=self._git_places())
        missing = tuple(str(path) for path in guards if not path.exists())
        absent = (*git.absent, *missing)
        ways = [Path(program).absolute(), Path(program).resolve()] if program else []
        show = _named_files(worker.config.command)
        # Of a program its directory, or the packages it is one of.
        for path in ways:
            parts = path.parts
            last = parts.index("node_modules") + 1 if "node_modules" in parts else len(parts) - 1
            show.append(Path(*parts[:last]))
        places = [*git.guarded, *kept, *guards]
        return self._box(places, git.writable, writes, kept=kept, show=show, absent=absent)

    def _git_places(self) -> list[Path]:
        repo = self._repo
        own = [repo.git_dir, repo.common_dir, repo.objects] if repo else []
        return [self._root / ".git", *own, *self._submodules()]

    def _git_writes(self) -> "_GitPlaces":
        """The places of a box in which git may write its own directory."""
        if self._repo is None:
            return _GitPlaces(guarded=self._git_places())
        own = {self._repo.git_dir.resolve(), self._repo.common_dir.resolve()}
        starts = [place / name for place in own for name in _GIT_STARTS]
        absent = tuple(str(path) for path in starts if not path.exists())
        link = self._root / ".git"
        trees = self._repo.common_dir / "worktrees"
        guarded = [*starts, trees, *self._submodules()]
        if link.is_file():
            guarded.append(link)
        return _GitPlaces(writable=sorted(own), guarded=guarded, absent=absent)

    def _submodules(self) -> Iterator[Path]:
        """Git's links in submodules, and the empty directories of those that are not there yet."""
        repo = self._repo
        if repo is None:
            return
        for path in (repo.root / os.fsdecode(link) for link in gitlinks(repo.git)):
            yield path / ".git" if (path / ".git").exists() else path

    def _box(
        self,
        guarded: Iterable[Path],
        write: Collection[Path] = (),
        allow: Iterable[Path] = (),
        *,
        kept: Iterable[Path] = (),
        show: Iterable[Path] = (),
        absent: tuple[str, ...] = (),
        withheld: frozenset[str] = frozenset(),
    ) -> Box:
        hidden = _there(self._hidden(frozenset(kept)))
        ports = self._section.network
        obeyed = self._obeyed.files if self._obeyed else ()
        ours = [*self._own, *self._customs]
        absent += tuple(str(path) for path in self._customs if not path.exists())
        low = self._relay and any(it.port < _FIRST_FREE for it in sandbox.listeners(ports))
        return Box(
            program=self._program,
            places=plan(
                write=_there([self._root, *self._caches, *write]),
                read=_there([self._own_directory, self._lane_room, *ours, *obeyed, *guarded]),
                hide_directories=[path for path in hidden if Path(path).is_dir()],
                hide_files=[path for path in hidden if not Path(path).is_dir()],
                show=_there([*self._seen, *show]),
                allow=_there([*write, *allow]),
            ),
            network=self._section.network,
            relay=self._relay,
            few_devices=bool(low) and os.geteuid() != 0,
            absent=absent,
            withheld=withheld,
        )

    def _hidden(self, kept: frozenset[Path]) -> Iterator[Path]:
        for word in (*_KEYS, *_BROWSERS, *_ENGINES):
            yield self._home / word
        for word in declared_homes():
            if (place := self._expand(word)) not in kept:
                yield place
        if (state := state_directory(self._env)) is not None:
            yield state.resolve()
        yield from map(self._expand, self._section.hide)
        try:
            beside = sorted(self._root.parent.iterdir())[:_MOST_SIBLINGS]
        except OSError:
            return
        yield from (path for path in beside if path != self._root and (path / ".git").exists())

    def _expand(self, word: str) -> Path:
        path = self._home / word[2:] if word.startswith("~/") else self._root / word
        return Path(os.path.normpath(path))

    def _made(self, word: str) -> Path:
        """A place that may be written; a directory is made, as its program would."""
        path = self._expand(word)
        if word.endswith("/"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


def _there(paths: Iterable[Path]) -> list[str]:
    """Those that exist, by their real names; a link that leads nowhere is none."""
    there = (path for path in paths if path.is_absolute() and os.access(path, os.F_OK))
    return list(dict.fromkeys(str(path.resolve()) for path in there))


def _bubblewrap(env: Env) -> str:
    """The program, which must be the user's own: one of the work tree is the agent's."""
    if sys.platform != "linux":
        raise NoSandbox(
            "bubblewrap is there for Linux only", "use a container; see docs/security.md"
        )
    found = programs.find(sandbox.PROGRAM, env.get("PATH", ""))
    if found is None:
        raise NoSandbox("bubblewrap is not installed", _INSTALL)
    return found
