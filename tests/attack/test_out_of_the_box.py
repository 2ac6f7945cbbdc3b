"""What a confined agent prepared is not run, imported, followed or obeyed by us, who are not confined.

Every test here leaves a mark in the person's home if something that was written inside of the
sandbox is executed outside of it.  Each has a twin in which honest work is done.
"""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ralphloop.proc.run import ourselves
from tests.attack.test_sandbox import ON, World, world
from tests.github.hub import StandIn

__all__ = ["world"]  # a fixture

pytestmark = [pytest.mark.attack, pytest.mark.tool("bwrap")]
PLACES = pytest.mark.parametrize("lanes", [(), ("--lanes", "1")], ids=["checkout", "lanes"])
PACKAGE = Path(__file__).parents[2] / "src" / "ralphloop"
GIT = shutil.which("git") or "git"
ASKS = b"[q]uit"


def pwn(world: World, name: str) -> str:
    """A shell command that leaves a mark where only the person can write."""
    return f"(echo x > {world.home}/{name}-PWNED) 2>/dev/null"


def planted(world: World, path: str, name: str, then: str = "exit 0") -> str:
    """Lines of an agent that write a program which leaves a mark, and then does its work."""
    body = f"#!/bin/sh\n{pwn(world, name)}\n{then}\n"
    folder = Path(path).parent
    return f"mkdir -p {folder}; printf %s {shlex.quote(body)} > {path}; chmod +x {path}"


def program(path: Path, body: str) -> None:
    """A program of the person's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def commit(world: World, words: str = "more") -> None:
    """What the person has, committed."""
    world.git("add", "--all")
    world.git("commit", "--quiet", "--no-verify", "-m", words)


def passed(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """A run in which the story passes although the agent also did something else."""
    done = world.ralph("run", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    newest = [GIT, "log", "-1", "--format=%s"]
    said = subprocess.run(newest, cwd=world.root, capture_output=True, text=True, check=True)
    assert said.stdout == "US-1: t\n"
    return done


INNER = """
git init -q inner && cd inner && echo one > a && git add a
git -c user.name=n -c user.email=n@example.com commit -qm one
{settings}
echo two > a; cd ..
"""


@PLACES
@pytest.mark.parametrize(
    "settings",
    [
        "git config filter.x.clean {prog!r}; echo 'a filter=x' > .gitattributes",
        "git config filter.x.process {prog!r}; echo 'a filter=x' > .gitattributes",
        "git config core.fsmonitor {prog!r}",
        "git config core.hooksPath ../hooks",
        "printf '[filter \"x\"]\\nclean = {prog}\\n' > ../c; git config include.path ../../c;"
        " echo 'a filter=x' > .gitattributes",
    ],
    ids=["clean", "process", "fsmonitor", "hooks", "include"],
)
def test_settings_of_a_repository_that_the_agent_made(
    world: World, lanes: tuple[str, ...], settings: str
) -> None:
    """Looking at what changed runs nothing that an inner repository names."""
    tool = planted(world, "tool", "inner", "cat")
    hooks = planted(world, "hooks/post-index-change", "hook")
    made = INNER.format(settings=settings.format(prog="../tool"))
    world.project(f"{tool}\n{hooks}\n{made}\necho done > work.txt", settings=ON)
    passed(world, *lanes)
    assert world.marks() == []


def test_a_repository_in_the_index_that_the_agent_put_there(world: World) -> None:
    """Where an agent may commit, its submodule is not looked into by git."""
    tool = planted(world, "tool", "link", "cat")
    made = INNER.format(
        settings="git config filter.x.clean ../tool; echo 'a filter=x' > .gitattributes"
    )
    # As long as before: else git would know without reading it.
    agent = f"{tool}\n{made}\ngit add inner tool; git commit -qm 'a link'; echo six > inner/a"
    world.project(f"{agent}\necho done > work.txt", settings=f'{ON}git = "guarded"\n')
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "160000" in world.git("ls-tree", "HEAD", "inner")
    assert world.marks() == []


def test_a_link_to_a_repository_that_is_not_there(world: World) -> None:
    """A gitlink without .gitmodules: nobody puts a repository in its empty place."""
    tool = planted(world, "tool", "empty", "cat")
    made = INNER.replace("git init", "mkdir -p inner; git init").format(
        settings="git config filter.x.clean ../tool; echo 'a filter=x' > .gitattributes"
    )
    world.project(f"{tool}\n{made}\necho done > work.txt", settings=ON)
    head = world.git("rev-parse", "HEAD")
    world.git("update-index", "--add", "--cacheinfo", f"160000,{head},inner")
    (world.root / "inner").mkdir()
    world.git("commit", "-qm", "a link to nothing")
    world.ralph("run")
    assert world.marks() == []


@PLACES
def test_work_in_an_inner_repository_is_seen(world: World, lanes: tuple[str, ...]) -> None:
    """An honest twin: what is done in a repository inside this one counts, and is named."""
    agent = INNER.format(settings="true")
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    done = passed(world, *lanes)
    if not lanes:
        assert "inner/ (a repository of its own)" in done.stdout + done.stderr


def test_a_program_in_an_active_environment_of_the_project(world: World) -> None:
    """With `.venv/bin` first on PATH, its `git` is the agent's: ours stays the one outside."""
    names = ("git", "gh", "bwrap", "cp", "systemd-inhibit", "notify-send")
    agent = "\n".join(
        planted(world, f".venv/bin/{name}", name, f'exec /usr/bin/{name} "$@"') for name in names
    )
    (world.root / ".venv/bin").mkdir(parents=True)
    program(world.root / ".venv/bin/own-tool", "exit 0")
    world.env["PATH"] = f"{world.root}/.venv/bin:{world.env['PATH']}"
    # A check and a hook find the tools of the environment all the same.
    (world.root / "check.sh").write_text("own-tool\n")
    notify = "[notify]\ndesktop = true\n"
    world.project(f"{agent}\necho done > work.txt", settings=f"{ON}{notify}")
    program(world.root / ".git/hooks/pre-commit", "own-tool || exit 1\n: > found-hook.json")
    with (world.root / ".gitignore").open("a") as file:
        file.write(".venv/\n")
    commit(world)
    (world.root / "found-hook.json").unlink(missing_ok=True)
    passed(world)
    assert (world.root / "found-hook.json").exists()
    # The next command meets what the agent of the last one left.
    for words in (["status"], ["doctor"], ["stories"], ["report"], ["review"], ["run"]):
        world.ralph(*words)
    assert world.marks() == []


def test_a_program_beside_a_relative_path(world: World) -> None:
    """`PATH=./node_modules/.bin:…` leads into each lane: no git of ours is taken from there."""
    agent = planted(world, "node_modules/.bin/git", "git", f'exec {GIT} "$@"')
    world.env["PATH"] = f"./node_modules/.bin:{world.env['PATH']}"
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    with (world.root / ".gitignore").open("a") as file:
        file.write("node_modules/\n")
    commit(world)
    passed(world, "--lanes", "1")
    passed_again = world.ralph("status")
    assert passed_again.returncode == 0
    assert world.marks() == []


def test_a_program_in_a_cache_that_may_be_written(world: World) -> None:
    """What `sandbox.write` opens is no place for programs of ours."""
    tools = world.home / ".tools/bin"
    tools.mkdir(parents=True)
    world.env["PATH"] = f"{tools}:{world.env['PATH']}"
    agent = planted(world, f"{tools}/git", "cache", f'exec {GIT} "$@"')
    world.project(f"{agent}\necho done > work.txt", settings=f'{ON}write = ["~/.tools"]\n')
    passed(world)
    assert world.marks() == []


def environment_of(world: World) -> Path:
    """A virtual environment of the project that ralph itself is installed in; its packages."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=world.root, check=True
    )
    site = next((world.root / ".venv/lib").glob("python*/site-packages"))
    shutil.copytree(PACKAGE, site / "ralphloop", ignore=shutil.ignore_patterns("__pycache__"))
    theirs = next(Path(sys.prefix, "lib").glob("python*/site-packages"))
    (site / "others.pth").write_text(f"{theirs}\n")
    return site


def from_environment(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """The ralph of the project's own environment."""
    argv = [".venv/bin/python", "-P", "-m", "ralphloop", *words]
    return subprocess.run(
        argv,
        cwd=world.root,
        env=world.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    "target", ["ralphloop/ui/report/render.py", "sitecustomize.py", "planted.pth", "IPython.py"]
)
def test_ralph_in_the_environment_of_the_project(world: World, target: str) -> None:
    """Its package, its interpreter and whatever they load are read-only in the box, which is said."""
    mark = f"open({str(world.home / 'module-PWNED')!r}, 'w')"
    line = f"import os; {mark}" if target.endswith(".pth") else mark
    site = ".venv/lib/python*/site-packages"
    agent = f"for site in {site}; do echo {shlex.quote(line)} >> $site/{target}; done"
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    environment_of(world)
    with (world.root / ".gitignore").open("a") as file:
        file.write(".venv/\n")
    commit(world)
    done = from_environment(world, "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ralph itself runs from" in done.stderr
    assert from_environment(world, "status").returncode == 0
    assert world.marks() == []


def test_a_project_that_is_installed_where_ralph_is(world: World) -> None:
    """Its own sources are on ralph's path then: nothing there runs at ralph's next start."""
    mark = f"open({str(world.home / 'custom-PWNED')!r}, 'w')"
    names = "sitecustomize usercustomize IPython attr"
    agent = f"for name in {names}; do echo {shlex.quote(mark)} > src/$name.py; done"
    (world.root / "src").mkdir()
    (world.root / "src/own.py").write_text("x = 1\n")
    (world.root / "check.sh").write_text(f"echo {shlex.quote(mark)} > src/sitecustomize.py\n")
    world.project(f"{agent}\necho 'x = 2' > src/own.py", settings=ON)
    site = environment_of(world)
    (site / "__editable__.own.pth").write_text(f"{world.root}/src\n")
    with (world.root / ".gitignore").open("a") as file:
        file.write(".venv/\n")
    commit(world)
    done = from_environment(world, "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (world.root / "src/own.py").read_text() == "x = 2\n"
    assert from_environment(world, "status").returncode == 0
    assert world.marks() == []


def test_a_cache_within_ralph_itself_is_refused(world: World) -> None:
    """`sandbox.write` cannot open the environment that ralph runs from."""
    world.project("echo done > work.txt", settings=f'{ON}write = [".venv/lib"]\n')
    environment_of(world)
    with (world.root / ".gitignore").open("a") as file:
        file.write(".venv/\n")
    commit(world)
    done = from_environment(world, "run")
    assert done.returncode == 65
    assert "would let ralph itself be rewritten" in done.stderr
    assert "pipx install ralphloop" in done.stderr


def test_modules_beside_the_project_are_not_loaded(world: World) -> None:
    """Started with `python -m`, or with PYTHONPATH in the tree: what comes late is not from there."""
    names = "jinja2 rich attr IPython"
    mark = f"open({str(world.home / 'here-PWNED')!r}, 'w')"
    agent = f"for name in {names}; do echo {shlex.quote(mark)} > $name.py; cp $name.py src/; done"
    (world.root / "src").mkdir()
    (world.root / "src/own.py").write_text("")
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    world.env["PYTHONPATH"] = f"{world.root}/src"
    done = subprocess.run(
        [sys.executable, "-m", "ralphloop", "run"],
        cwd=world.root,
        env=world.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PYTHONPATH" in done.stderr
    assert world.marks() == []


def test_setup_of_lanes_is_confined(world: World) -> None:
    """A script that `lanes.setup` names and an agent rewrote runs in the box, as checks do."""
    setup = '[lanes]\nsetup = [["sh", "setup.sh"]]\n'
    (world.root / "setup.sh").write_text(": > made-PWNED\n")
    rewritten = f"{pwn(world, 'setup')}; : > again-PWNED"
    agent = f"echo {shlex.quote(rewritten)} > setup.sh; echo x > requirements.txt"
    world.project(f"{agent}\necho done > work.txt", settings=f"{ON}{setup}")
    passed(world, "--lanes", "1")
    landing = world.place / "code/mine.lanes/landing"
    assert (landing / "made-PWNED").exists()
    assert (landing / "again-PWNED").exists()
    assert world.marks() == []


@pytest.mark.parametrize("honest", [False, True], ids=["hostile", "honest"])
def test_submodules_of_lanes_come_from_where_the_person_says(world: World, *, honest: bool) -> None:
    """`git submodule update` as setup works, until an agent says where they come from."""
    (world.home / ".gitconfig").write_text('[protocol "file"]\n\tallow = always\n')
    library = world.place / "library"
    subprocess.run([GIT, "init", "-q", str(library)], check=True)
    who = ["-c", "user.name=n", "-c", "user.email=n@example.com"]
    empty = ["commit", "-q", "--allow-empty", "-m", "one"]
    subprocess.run([GIT, *who, *empty], cwd=library, check=True)
    setup = '[lanes]\nsetup = [["git", "submodule", "update", "--init"]]\n'
    elsewhere = (
        "git config -f .gitmodules submodule.vendor.url /elsewhere; echo x > requirements.txt"
    )
    agent = "true" if honest else elsewhere
    world.project(f"{agent}\necho done > work.txt", settings=f"{ON}{setup}")
    world.git("submodule", "add", "-q", str(library), "vendor")
    commit(world)
    done = world.ralph("run", "--lanes", "1")
    assert (world.place / "code/mine.lanes/1/vendor/.git").exists(), done.stdout + done.stderr
    if honest:
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        assert ".gitmodules is not as in your checkout" in done.stdout + done.stderr


def test_setup_that_wants_out_says_which_line_would_let_it(world: World) -> None:
    """What a setup is kept from writing is named with the setting that allows it."""
    cache = world.home / ".cache/installer"
    cache.mkdir(parents=True)
    (world.root / "setup.sh").write_text(f"echo x > {cache}/index\n")
    setup = '[lanes]\nsetup = [["sh", "setup.sh"]]\n'
    world.project("echo done > work.txt", settings=f"{ON}{setup}")
    done = world.ralph("run", "--lanes", "1")
    assert done.returncode == 66
    assert f'[sandbox] write = ["{cache}"]' in done.stderr


COMMANDS = pytest.mark.parametrize(
    "argv",
    [["./tell.sh"], ["sh", "tell.sh"], ["sh", "-c", "exec ./tell.sh"], ["make", "-s", "tell"]],
    ids=["program", "script", "inline", "recipe"],
)


@PLACES
@COMMANDS
@pytest.mark.parametrize("setting", ["session.on_end", "notify.command"])
def test_a_command_of_the_tree_runs_in_the_box(
    world: World, lanes: tuple[str, ...], argv: list[str], setting: str
) -> None:
    """What an agent rewrote is not run outside when something is to be told."""
    section, _, key = setting.partition(".")
    told = f"[{section}]\n{key} = {json.dumps(argv)}\n"
    program(world.root / "tell.sh", "exit 0")
    (world.root / "Makefile").write_text("tell:\n\t@sh tell.sh\n")
    agent = planted(world, "tell.sh", "told", ": > told-PWNED")
    world.project(f"{agent}\necho done > work.txt", settings=f"{ON}")
    text = (world.root / "ralph.toml").read_text()
    text = text.replace("[session]\n", told) if section == "session" else f"{text}{told}"
    (world.root / "ralph.toml").write_text(text)
    commit(world)
    passed(world, *lanes)
    assert world.marks() == []
    if not lanes or section == "session":  # else the checkout may still have the person's own
        assert (world.root / "told-PWNED").exists()


def test_a_command_of_the_person_runs_outside(world: World) -> None:
    """An honest twin: a program that lies elsewhere reaches what it needs."""
    teller = world.home / "bin/teller"
    program(teller, f"cat >> {world.home}/told")
    told = f'[notify]\ncommand = ["{teller}", "x"]\n'
    world.project("echo done > work.txt", settings=f"{ON}{told}")
    text = (world.root / "ralph.toml").read_text()
    end = f'[session]\non_end = ["sh", "-c", "cat > {world.home}/ended"]\n'
    (world.root / "ralph.toml").write_text(text.replace("[session]\n", end))
    commit(world)
    passed(world)
    assert "run_finished" in (world.home / "told").read_text()
    assert '"decision"' in (world.home / "ended").read_text()


@PLACES
def test_a_filter_of_the_tree_is_confined(world: World, lanes: tuple[str, ...]) -> None:
    """A clean filter that the person configured and an agent rewrote runs in the box only."""
    program(world.root / "clean.sh", "tr a b")
    world.git("config", "filter.own.clean", "./clean.sh")
    world.git("config", "filter.own.smudge", "cat")
    world.git("config", "filter.own.required", "true")
    agent = planted(world, "clean.sh", "filter", "tr a b")
    world.project(f"{agent}\necho abc > x.txt; echo done > work.dat", settings=ON)
    (world.root / ".gitattributes").write_text("*.txt filter=own\n")
    commit(world)
    passed(world, *lanes)
    assert world.git("show", "HEAD:x.txt") == "bbc"
    for words in (["status"], ["doctor"], ["review"], ["reject", "US-1", "no"]):
        world.ralph(*words)
    assert world.marks() == []


def test_settings_of_git_that_lie_in_the_tree_stay_as_they_are(world: World) -> None:
    """Where `.git/config` includes a file of the tree, an agent in the box cannot change it."""
    (world.root / "git.settings").write_text("[core]\n\tabbrev = 12\n")
    world.git("config", "include.path", "../git.settings")
    tool = planted(world, "tool", "include", "cat")
    agent = f"{tool}\nprintf '[filter \"x\"]\\n\\tclean = ./tool\\n' >> git.settings"
    world.project(
        f"{agent}\necho '*.txt filter=x' > .gitattributes; echo done > work.txt", settings=ON
    )
    passed(world)
    assert "filter" not in (world.root / "git.settings").read_text()
    world.ralph("status")
    assert world.marks() == []


def test_settings_that_could_come_into_being_are_refused(world: World) -> None:
    """An included file of the tree that is not there yet: a run does not begin, and says why."""
    world.git("config", "include.path", "../git.settings")
    world.project("echo done > work.txt", settings=ON)
    done = world.ralph("run")
    assert done.returncode == 66
    assert "git.settings" in done.stderr


def test_a_signing_program_of_the_tree_stays_as_it_is(world: World) -> None:
    """Signing happens outside: what signs cannot be rewritten inside."""
    signer = (
        "cat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\nx\\n-----END PGP SIGNATURE-----\\n'"
    )
    program(world.root / "sign.sh", signer)
    agent = planted(world, "sign.sh", "sign", signer)
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    world.git("config", "gpg.program", str(world.root / "sign.sh"))
    world.git("config", "commit.gpgSign", "true")
    passed(world)
    assert "BEGIN PGP SIGNATURE" in world.git("cat-file", "-p", "HEAD")
    assert world.marks() == []


def test_hooks_of_the_tree_while_lanes_are_made(world: World) -> None:
    """A `reference-transaction` hook that an agent left does not run where work trees are made."""
    agent = planted(world, ".husky/reference-transaction", "hook")
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    world.git("config", "core.hooksPath", ".husky")
    passed(world)
    assert (world.root / ".husky/reference-transaction").exists()
    text = (world.root / "prd.json").read_text().replace("US-1", "US-2").replace("true", "false")
    (world.root / "prd.json").write_text(text)
    world.env["GIT_CONFIG_COUNT"] = "1"
    world.env["GIT_CONFIG_KEY_0"] = "core.hooksPath"
    world.env["GIT_CONFIG_VALUE_0"] = "/dev/null"
    world.git("commit", "-qam", "another story")
    for name in ("COUNT", "KEY_0", "VALUE_0"):
        del world.env[f"GIT_CONFIG_{name}"]
    world.ralph("run", "--lanes", "1")
    assert world.marks() == []


def test_a_rejection_runs_hooks_in_the_box(world: World) -> None:
    """`ralph reject` commits: the hooks that an agent wrote are confined then as well."""
    agent = planted(world, ".husky/reference-transaction", "hook")
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    world.git("config", "core.hooksPath", ".husky")
    passed(world)
    done = world.ralph("reject", "US-1", "not", "so")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (world.root / "work.txt").exists()
    assert world.marks() == []


def on_github(world: World) -> Path:
    """The project on a branch of its own, with a remote and a gh; the remote."""
    bare = world.place / "shop.git"
    address = "https://github.com/owner/shop.git"
    world.git("branch", "-M", "main")
    subprocess.run([GIT, "clone", "-q", "--bare", str(world.root), str(bare)], check=True)
    world.git("remote", "add", "origin", address)
    world.git("config", f"url.{bare}.insteadOf", address)
    world.git("switch", "-q", "-c", "work")
    world.git("config", "core.hooksPath", ".husky")
    gh = StandIn(world.place / "gh")
    world.env["PATH"] = f"{gh.place}:{world.env['PATH']}"
    return bare


@pytest.mark.parametrize("honest", [False, True], ids=["hostile", "honest"])
@pytest.mark.parametrize("by_end", [False, True], ids=["by-hand", "on-end"])
def test_a_push_runs_hooks_in_the_box(world: World, *, honest: bool, by_end: bool) -> None:
    """`ralph pr` pushes with the person's login; a `pre-push` hook of the tree does not get it."""
    hook = "grep -q refs/heads/work && : > pushed-PWNED"
    program(world.root / ".husky/pre-push", hook)
    rewritten = planted(world, ".husky/pre-push", "push", hook)
    agent = "true" if honest else rewritten
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    if by_end:
        text = (world.root / "ralph.toml").read_text()
        text = text.replace("[session]\n", '[session]\non_end = ["pr"]\n')
        (world.root / "ralph.toml").write_text(text)
        commit(world)
    bare = on_github(world)
    done = passed(world)
    if not by_end:
        done = world.ralph("pr")
        assert done.returncode == 0, done.stdout + done.stderr
    heads = subprocess.run(
        [GIT, "for-each-ref", "refs/heads/work"],
        cwd=bare,
        capture_output=True,
        text=True,
        check=True,
    )
    assert heads.stdout, done.stdout + done.stderr
    assert (world.root / "pushed-PWNED").exists()
    assert world.marks() == []


def test_a_hook_that_refuses_a_push_is_told_of(world: World) -> None:
    """What a hook in the box says no to is not pushed, and the way out is named."""
    program(world.root / ".husky/pre-push", "echo no keys here >&2; exit 1")
    world.project("echo done > work.txt", settings=ON)
    on_github(world)
    passed(world)
    done = world.ralph("pr")
    assert done.returncode == 66
    assert "the pre-push hook failed in the sandbox: no keys here" in done.stderr
    assert "git push origin" in done.stderr


def typed(world: World, keys: bytes, *words: str) -> str:
    """What a command says on a terminal where these keys are pressed."""
    ours, theirs = pty.openpty()
    env = {**world.env, "TERM": "xterm", "PAGER": "cat"}
    with subprocess.Popen(
        [*ourselves(), *words], cwd=world.root, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the terminal is closed with its last process
                break
            said += chunk
            # What is typed before anybody asks is thrown away.
            if said.rstrip().endswith(ASKS) and keys:
                time.sleep(0.2)
                os.write(ours, keys[:1])
                keys = keys[1:]
        process.wait(60)
    os.close(ours)
    return said.decode("utf-8", "replace")


def test_a_diff_driver_of_the_tree_is_not_used_in_a_review(world: World) -> None:
    """What a story changed is shown by git itself."""
    program(world.root / "show.sh", 'cat "$1"')
    world.git("config", "diff.own.textconv", "./show.sh")
    world.git("config", "diff.external", "./show.sh")
    agent = planted(world, "show.sh", "diff", 'cat "$1"')
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    (world.root / ".gitattributes").write_text("*.txt diff=own\n")
    commit(world)
    passed(world)
    for words in (["review"], ["report"], ["review", "--json"], ["learnings"]):
        world.ralph(*words)
    # A person who presses `d` sees the change, in a pager of their own.
    said = typed(world, b"dq", "review", "--plain")
    assert "+ done" in said
    assert world.marks() == []


def test_an_agent_that_is_installed_in_the_project_is_asked_inside(world: World) -> None:
    """`claude --version` of node_modules is the agent's word: it is asked in the box."""
    help_text = "claude --output-format --settings --session-id --resume -p --verbose"
    honest = (
        f'case "$1" in --version) echo 2.0.0;; --help) echo "{help_text}";; *)\ncat > /dev/null\n'
    )
    rest = "echo done > work.txt;;\nesac"
    body = f"#!/bin/sh\n{pwn(world, 'cli')}\n{honest}{rest}\n"
    agent = f"printf %s {shlex.quote(body)} > node_modules/.bin/claude"
    program(world.root / "node_modules/.bin/claude", f"{honest}{agent}\n{rest}")
    world.project("true", settings=f"{ON}[limits]\nmax_iterations = 1\n")
    text = (world.root / "ralph.toml").read_text()
    text = text.replace('name = "command"\ncommand = ["./agent.sh"]', 'name = "claude"')
    (world.root / "ralph.toml").write_text(text)
    with (world.root / ".gitignore").open("a") as file:
        file.write("node_modules/\n")
    commit(world)
    world.env["PATH"] = f"{world.root}/node_modules/.bin:{world.env['PATH']}"
    world.ralph("run")
    assert "PWNED" in (world.root / "node_modules/.bin/claude").read_text()
    for words in (["run"], ["doctor"], ["run", "--continue"]):
        world.ralph(*words)
    assert world.marks() == []


def test_nothing_is_found_where_an_inner_directory_is_a_link(world: World) -> None:
    """A repository inside whose git directory lies elsewhere is not followed."""
    agent = (
        "mkdir inner; echo 'gitdir: ../../other/.git' > inner/.git; echo x > inner/a\n"
        "mkdir linked; ln -s ../../other/.git linked/.git; echo x > linked/a"
    )
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    elsewhere = world.place / "code/other/.git"
    (elsewhere / "index").write_bytes(b"what git would complain of")
    passed(world)
    world.ralph("status")
    assert world.marks() == []
