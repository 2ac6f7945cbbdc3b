"""What people keep in their home is not there in the sandbox; and ralph itself is never offered."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from ralphloop.proc.sandbox import in_words
from tests.attack.test_sandbox import ON, World, refused, world

pytestmark = [pytest.mark.attack, pytest.mark.tool("bwrap", optional=True)]
__all__ = ["world"]

SECRET_FILES = (
    ".npmrc .yarnrc.yml .cargo/credentials.toml .cargo/credentials .m2/settings.xml"
    " .gradle/gradle.properties .pgpass .my.cnf .mylogin.cnf .gem/credentials .bundle/config"
    " .composer/auth.json .config/composer/auth.json .config/pip/pip.conf .pip/pip.conf"
    " .config/doctl/config.yaml .config/hcloud/cli.toml .fly/config.yml .oci/config .s3cfg .boto"
    " .databrickscfg .subversion/auth/svn.simple/x .config/github-copilot/hosts.json"
    " .config/glab-cli/config.yml .kaggle/kaggle.json .cache/huggingface/token"
    " .local/share/fish/fish_history .mysql_history .sqlite_history .rediscli_history"
    " .irb_history .librewolf/x/logins.json .config/Slack/Cookies .authinfo .msmtprc"
    " .config/keepassxc/keepassxc.ini .config/ralph/config.toml"
).split()
HONEST = (".cargo/config.toml", ".m2/repository/x.jar", ".gitconfig", ".config/fish/config.fish")


def test_files_of_keys_logins_and_histories_are_not_seen(world: World) -> None:
    """Each is empty or gone inside; what programs need to work is there."""
    for name in (*SECRET_FILES, *HONEST):
        path = world.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# SECRET-OF-MINE\n")
    looks = "grep -rl SECRET-OF-MINE ~ > seen.txt"
    world.project(f"{looks}\necho done > work.txt", settings=ON)
    if refused(world):
        return
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (world.root / "seen.txt").read_text().splitlines()
    seen = {str(Path(line).relative_to(world.home)) for line in lines}
    assert seen == set(HONEST)


def test_a_file_that_programs_parse_is_empty_and_not_broken(world: World) -> None:
    """Maven and Composer refuse a file of nothing; they find one that says nothing."""
    for name in (".m2/settings.xml", ".composer/auth.json"):
        (world.home / name).parent.mkdir(parents=True)
        (world.home / name).write_text("SECRET\n")
    parses = (
        "import json, pathlib, xml.etree.ElementTree as tree;"
        "home = pathlib.Path.home();"
        "assert tree.parse(home / '.m2/settings.xml').getroot().tag == 'settings';"
        "assert json.loads((home / '.composer/auth.json').read_text()) == {}"
    )
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable
    world.project(f'{python} -c "{parses}" && echo done > work.txt', settings=ON)
    if refused(world):
        return
    done = world.ralph("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (world.root / "work.txt").exists()


def test_ralphs_own_files_are_never_offered_to_be_written(world: World) -> None:
    """An agent that tries is named with what was refused, and with no line that would allow it."""
    target = Path(sys.prefix) / "bin" / "ralph"
    agent = f"echo x > {target}\necho 'cannot write: {target}: Read-only file system' >&2"
    world.project(f"{agent}\necho done > work.txt", settings=ON)
    if refused(world):
        return
    done = world.ralph("run", "-v")
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert f"the sandbox kept {target} from being written" in said
    assert "to allow it" not in said


def test_no_place_that_programs_come_from_is_offered(tmp_path: Path) -> None:
    """Nor ralph's package, settings and records, nor what lies around them; a cache is."""
    import ralphloop

    home = Path(os.environ["HOME"])
    ours = [
        Path(sys.prefix) / "bin" / "ralph",
        Path(sys.prefix) / "new",
        Path(ralphloop.__file__),
        Path(sys.prefix).parent / "x",
        home / ".config" / "ralph" / "config.toml",
        home / ".local" / "state" / "ralph" / "trust" / "x",
        home / ".bashrc",
        home / ".ssh" / "authorized_keys",
        *(Path(place) / "git" for place in os.environ["PATH"].split(":") if place),
    ]
    for path in ours:
        [said] = in_words([str(path)])
        assert "to allow it" not in said, path
    cache = home / ".cache" / "tool" / "index"
    [said] = in_words([str(cache)])
    assert f'[sandbox] write = ["{cache.parent}"]' in said
    [said] = in_words([str(tmp_path / "elsewhere" / "x")])
    assert "to allow it" in said
