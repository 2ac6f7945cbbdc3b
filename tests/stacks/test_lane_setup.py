"""What a fresh work tree lacks, and the lines that bring it."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from ralphloop.stacks.lane_setup import LaneRecipe, lacking_in_lane, lane_recipe, recipe_lines
from tests.conftest import RunRalph

CHECKS = ((".venv/bin/python", "-m", "pytest"),)


def environment(root: Path, *, editable: bool) -> None:
    """A virtual environment, as far as one looks at it."""
    packages = root / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (root / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    program = root / ".venv" / "bin" / "python"
    program.parent.mkdir()
    program.symlink_to("/usr/bin/env")
    if editable:
        (packages / "__editable__.shop-1.pth").write_text(f"{root}/src\n")


def test_an_environment_of_the_checkout_is_made_anew(tmp_path: Path) -> None:
    """Copied, it would test the checkout; with its extra for tests."""
    environment(tmp_path, editable=True)
    extras = "[project]\nname = 'shop'\n[project.optional-dependencies]\ntest = ['pytest']\n"
    (tmp_path / "pyproject.toml").write_text(extras)
    recipe = lane_recipe(tmp_path)
    assert recipe.copy == ()
    assert recipe.setup == (
        ("python3", "-m", "venv", ".venv"),
        (".venv/bin/python", "-m", "pip", "install", "-e", ".[test]"),
    )


def test_an_environment_that_leads_to_the_checkout_is_not_copied(tmp_path: Path) -> None:
    """Flit, Poetry and Hatch name their file after the project; others name other places."""
    environment(tmp_path, editable=False)
    packages = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages"
    (packages / "other.pth").write_text("/opt/other\nimport site\n")
    assert lane_recipe(tmp_path).copy == (".venv",)
    (packages / "shop.pth").write_text(f"{tmp_path}/src\n")
    assert lane_recipe(tmp_path).copy == ()


def test_a_group_of_dependencies_is_installed_for_the_tests(tmp_path: Path) -> None:
    """The one with the runner, each by its name: an older pip knows no groups."""
    environment(tmp_path, editable=True)
    groups = "[dependency-groups]\ndev = ['ruff']\ntests = ['pytest>=8', {include-group = 'x'}]\n"
    (tmp_path / "pyproject.toml").write_text(groups)
    (_, install) = lane_recipe(tmp_path).setup
    assert install[1:] == ("-m", "pip", "install", "pytest>=8", "-e", ".")


@pytest.mark.parametrize("is_there", [True, False])
def test_uv_makes_an_environment_where_it_is_installed(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone of a project that uses uv may be worked on without it."""
    environment(tmp_path, editable=True)
    (tmp_path / "uv.lock").write_text("")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uv").write_text("#!/bin/sh\n")
    (tools / "uv").chmod(0o755 if is_there else 0o644)
    monkeypatch.setenv("PATH", str(tools))
    first = lane_recipe(tmp_path).setup[0]
    assert first == (("uv", "sync") if is_there else ("python3", "-m", "venv", ".venv"))


def test_an_environment_of_others_is_copied(tmp_path: Path) -> None:
    """Nothing in it leads back."""
    environment(tmp_path, editable=False)
    assert lane_recipe(tmp_path) == ((".venv",), ())


@pytest.mark.parametrize(
    ("lock", "argv"),
    [("package-lock.json", ("npm", "ci")), ("pnpm-lock.yaml", ("pnpm", "install"))],
)
def test_modules_come_by_their_lock(
    tmp_path: Path, lock: str, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock file says which tool made them; where that is not installed, they are copied."""
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    (tmp_path / "node_modules").mkdir()
    (tmp_path / lock).write_text("{}")
    assert lane_recipe(tmp_path) == (("node_modules",), ())
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / argv[0]).write_text("#!/bin/sh\n")
    (tmp_path / "tools" / argv[0]).chmod(0o755)
    (found,) = lane_recipe(tmp_path).setup
    assert found[: len(argv)] == argv


def test_modules_are_copied_where_git_ignores_their_lock(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A fresh work tree has no lock file then, and `npm ci` would fail there."""
    (tmp_path / "package.json").write_text('{"name": "shop", "scripts": {"test": "true"}}')
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "package-lock.json").write_text("{}")
    (tmp_path / ".gitignore").write_text("package-lock.json\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert run_ralph("init", cwd=tmp_path).returncode == 0
    lanes = tomllib.loads((tmp_path / "ralph.toml").read_text())["lanes"]
    assert lanes == {"copy": ["node_modules"]}


def test_nothing_installed_needs_nothing(tmp_path: Path) -> None:
    """Rust, Go and a bare repository build from what is committed."""
    (tmp_path / "Cargo.toml").write_text("[package]\nname = 'a'\n")
    assert lane_recipe(tmp_path) == ((), ())


def test_what_checks_need_and_a_lane_lacks_is_named_with_what_to_write(tmp_path: Path) -> None:
    """Brought or made, nothing is lacking; the lines are TOML."""
    environment(tmp_path, editable=False)
    (told,) = lacking_in_lane(tmp_path, CHECKS, LaneRecipe())
    assert told.words == ".venv is not in git, and .venv/bin/python -m pytest needs it"
    assert told.fix == 'write [lanes] copy = [".venv"] in ralph.toml'
    assert tomllib.loads("\n".join(recipe_lines(lane_recipe(tmp_path)))) == {"copy": [".venv"]}


@pytest.mark.parametrize(
    ("recipe", "is_lacking"),
    [
        (LaneRecipe(copy=(".venv",)), False),
        (LaneRecipe(copy=("./.venv/",)), False),
        (LaneRecipe(copy=(".venv2",)), True),
        (LaneRecipe(setup=(("uv", "sync"),)), False),
        (LaneRecipe(setup=(("python3", "-m", "venv", ".venv"),)), False),
        (LaneRecipe(setup=(("./bootstrap.sh",),)), False),  # nobody can say what it makes
        (LaneRecipe(setup=(("npm", "ci"),)), True),
        (LaneRecipe(setup=(("git", "submodule", "update", "--init"),)), True),
        (LaneRecipe(setup=(("python3", "-m", "pip", "install", "-e", "."),)), True),
    ],
)
def test_another_setup_makes_no_environment(
    tmp_path: Path, recipe: LaneRecipe, is_lacking: bool
) -> None:
    """Only what may make just that is taken for it."""
    environment(tmp_path, editable=False)
    assert bool([*lacking_in_lane(tmp_path, CHECKS, recipe)]) is is_lacking


def test_an_environment_that_leads_back_is_lacking_also_where_it_is_copied(tmp_path: Path) -> None:
    """A run would refuse it; it is said before."""
    environment(tmp_path, editable=True)
    (told,) = lacking_in_lane(tmp_path, CHECKS, LaneRecipe(copy=(".venv",)))
    assert told.words.startswith(".venv installs the project from here")
    assert 'setup = [["python3", "-m", "venv", ".venv"]' in told.fix


def test_whatever_git_does_not_have_is_lacking(tmp_path: Path) -> None:
    """A program or a file that a check names, wherever it lies."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "lint").write_text("")
    checks = (("sh", "./tools/lint", "src"), ("make", "tools2/x"))
    (told,) = lacking_in_lane(tmp_path, checks, LaneRecipe(), ["tools/", "other"])
    assert told.words == "tools is not in git, and sh ./tools/lint src needs it"
    assert told.fix == 'write [lanes] copy = ["tools"] in ralph.toml'


def test_init_writes_it_and_doctor_misses_it(tmp_path: Path, run_ralph: RunRalph) -> None:
    """The settings of a fresh project bring its environment; without them it is said."""
    environment(tmp_path, editable=False)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\nversion = '1'\n")
    assert run_ralph("init", cwd=tmp_path).returncode == 0
    written = tmp_path / "ralph.toml"
    assert tomllib.loads(written.read_text())["lanes"]["copy"] == [".venv"]
    written.write_text('[checks]\ncommands = [[".venv/bin/python", "-m", "pytest"]]\n')
    said = " ".join(run_ralph("doctor", cwd=tmp_path).stdout.split())
    assert ".venv is not in git" in said
    assert 'write [lanes] copy = [".venv"] in ralph.toml' in said
