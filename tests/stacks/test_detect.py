"""What a repository is built on, told from its files alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from ralphloop.errors import InputError
from ralphloop.stacks.detect import Detection, detect, load_stacks

NPM_DEFAULT = 'echo "Error: no test specified" && exit 1'


def repository(root: Path, files: Mapping[str, object]) -> Path:
    """A directory with these files; a name that ends in `/` is a directory, a dict is JSON."""
    for name, content in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


def commands(detected: Detection) -> list[str]:
    """The check commands as one would type them."""
    return [" ".join(argv) for argv in detected.checks]


def node(**scripts: str) -> dict[str, object]:
    """A package.json with these scripts."""
    return {"name": "shop", "scripts": scripts}


UNITTEST = "import unittest\n"

CASES: dict[str, tuple[dict[str, object], list[str]]] = {
    "python, nothing to check": ({"setup.py": ""}, []),
    "python with a tests directory": ({"pyproject.toml": "", "tests/": ""}, ["pytest -q"]),
    "python, pytest configured": ({"pyproject.toml": "[tool.pytest.ini_options]"}, ["pytest -q"]),
    "python, old configuration": (
        {"setup.cfg": "[tool:pytest]\n[mypy]\n[flake8]\n"},
        ["pytest -q", "flake8", "mypy ."],
    ),
    "python, ruff and mypy": (
        {"pyproject.toml": '[tool.ruff]\n[tool.mypy]\nfiles = ["src"]\n', "tests/": ""},
        ["pytest -q", "ruff check --no-fix .", "mypy"],
    ),
    "python without pytest anywhere": (
        {"requirements.txt": "requests\n", "tests/test_shop.py": UNITTEST},
        ["python3 -m unittest discover -q -s tests"],
    ),
    "python, tests beside the code": (
        {"requirements.txt": "", "test_shop.py": UNITTEST},
        ["python3 -m unittest -q"],
    ),
    "python, unittest under pytest": (
        {"requirements-dev.txt": "pytest\n", "setup.py": "", "tests/test_shop.py": UNITTEST},
        ["pytest -q"],
    ),
    "uv": (
        {"pyproject.toml": "[tool.ruff]", "uv.lock": "", "tests/": ""},
        ["uv run pytest -q", "uv run ruff check --no-fix ."],
    ),
    "poetry": (
        {"pyproject.toml": "", "poetry.lock": "", "tests/": ""},
        ["poetry run pytest -q"],
    ),
    "virtual environment": (
        {"setup.py": "", ".venv/bin/python": "", "tests/": ""},
        [".venv/bin/python -m pytest -q"],
    ),
    "npm": (
        {"package.json": node(test="jest", lint="eslint .")},
        ["npm test", "npm run lint"],
    ),
    "npm without real tests": ({"package.json": node(test=NPM_DEFAULT)}, []),
    "npm without scripts": ({"package.json": {"name": "shop"}}, []),
    "a lint script that repairs is no check": (
        {"package.json": node(lint="eslint --fix .", test="jest")},
        ["npm test"],
    ),
    "typescript": (
        {"package.json": node(test="vitest run"), "tsconfig.json": "{}"},
        ["npm test", "npx tsc --noEmit"],
    ),
    "typescript with its own script": (
        {"package.json": node(typecheck="tsc -b"), "tsconfig.json": "{}"},
        ["npm run typecheck"],
    ),
    "pnpm": (
        {"package.json": node(test="jest"), "pnpm-lock.yaml": "", "tsconfig.json": "{}"},
        ["pnpm test", "pnpm exec tsc --noEmit"],
    ),
    "yarn": ({"package.json": node(test="jest"), "yarn.lock": ""}, ["yarn test"]),
    "bun": ({"package.json": node(test="jest"), "bun.lock": ""}, ["bun run test"]),
    "the manifest names its manager": (
        {"package.json": {**node(test="jest"), "packageManager": "pnpm@9.1.0"}},
        ["pnpm test"],
    ),
    "rust": ({"Cargo.toml": '[package]\nname = "shop"\n'}, ["cargo test"]),
    "rust workspace": (
        {"Cargo.toml": '[workspace]\nmembers = ["a"]\n', "rustfmt.toml": ""},
        ["cargo test --workspace", "cargo fmt --check"],
    ),
    "go": ({"go.mod": "module example.com/shop\n"}, ["go test ./..."]),
    "go with a linter": (
        {"go.mod": "module x\n", ".golangci.yml": ""},
        ["go test ./...", "golangci-lint run"],
    ),
    "maven": ({"pom.xml": "<project/>"}, ["mvn -q test"]),
    "maven wrapper": ({"pom.xml": "<project/>", "mvnw": ""}, ["./mvnw -q test"]),
    "gradle": ({"build.gradle": ""}, ["gradle test"]),
    "gradle wrapper": ({"build.gradle.kts": "", "gradlew": ""}, ["./gradlew test"]),
    "python and node side by side": (
        {"pyproject.toml": "", "tests/": "", "package.json": node(test="jest")},
        ["pytest -q", "npm test"],
    ),
    "only a makefile": ({"Makefile": "all:\n\ntest:\n\ttrue\n"}, ["make test"]),
    "a makefile that begins with its tests": ({"Makefile": "test: all\n"}, ["make test"]),
    "a makefile without tests": ({"Makefile": "latest:\n\ttrue\n"}, []),
    "nothing": ({}, []),
    "broken manifests": ({"package.json": "{", "pyproject.toml": "= ="}, []),
    "manifests of the wrong shape": ({"package.json": [1, 2], "tsconfig.json": "{}"}, ["npx tsc --noEmit"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_checks_are_those_that_exist(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only commands that the files speak of become checks, by the project's own tools."""
    files, expected = CASES[name]
    monkeypatch.setenv("PATH", "")
    detected = detect(repository(tmp_path, files))
    assert commands(detected) == expected


@pytest.mark.parametrize(
    "files, title",
    [
        ({"pyproject.toml": ""}, "Python"),
        ({"package.json": "{}"}, "Node"),
        ({"Cargo.toml": ""}, "Rust"),
        ({"go.mod": ""}, "Go"),
        ({"pom.xml": ""}, "Java"),
        ({"build.gradle": ""}, "Java"),
        ({"pom.xml": "", "build.gradle": ""}, "Java"),
        ({"package.json": "{}", "setup.py": ""}, "Python and Node"),
        ({}, ""),
    ],
)
def test_stacks_are_named(files: dict[str, object], title: str, tmp_path: Path) -> None:
    """The marks of a stack are files; where several stand together, all are named."""
    assert detect(repository(tmp_path, files)).title == title


@pytest.mark.parametrize(
    "files, name, description",
    [
        (
            {"pyproject.toml": '[project]\nname = "shop"\ndescription = "Sells\\nthings"\n'},
            "shop",
            "Sells things",
        ),
        ({"package.json": {"name": "@acme/web", "description": "The web"}}, "@acme/web", "The web"),
        ({"Cargo.toml": '[package]\nname = "ox"\n'}, "ox", ""),
        ({"go.mod": "module example.com/shop\n\ngo 1.22\n"}, "example.com/shop", ""),
        ({"package.json": {"name": 3}}, "here", ""),
        ({}, "here", ""),
    ],
)
def test_the_project_is_called_what_it_calls_itself(
    files: dict[str, object], name: str, description: str, tmp_path: Path
) -> None:
    """Name and description come from the manifest on one line, else the directory's name."""
    (tmp_path / "here").mkdir()
    detected = detect(repository(tmp_path / "here", files))
    assert (detected.name, detected.description) == (name, description)


@pytest.mark.parametrize(
    "files, word",
    [
        ({"package.json": {"workspaces": ["packages/*"]}}, "workspace"),
        ({"package.json": "{}", "pnpm-workspace.yaml": ""}, "workspace"),
        ({"package.json": "{}", "turbo.json": "{}"}, "workspace"),
        ({"Cargo.toml": "[workspace]"}, "cargo workspace"),
        ({"go.mod": "module x", "go.work": ""}, "Go workspace"),
        ({"pom.xml": "<modules><module>a</module></modules>"}, "several modules"),
        ({"settings.gradle": "include 'a'"}, "several projects"),
        ({"web/package.json": "{}", "api/go.mod": ""}, "api (Go), web (Node)"),
    ],
)
def test_a_monorepo_is_said_in_words(files: dict[str, object], word: str, tmp_path: Path) -> None:
    """Where the checks found may not cover everything, a sentence says so."""
    assert any(word in hint for hint in detect(repository(tmp_path, files)).hints)


def test_a_simple_repository_gets_no_hints(tmp_path: Path) -> None:
    """Directories that every project has are not taken for projects."""
    files: dict[str, object] = {"package.json": "{}", "node_modules/package.json": "{}", "src/": ""}
    assert detect(repository(tmp_path, files)).hints == ()


def test_many_projects_below_are_counted_not_listed(tmp_path: Path) -> None:
    """A hint stays one sentence however many directories there are."""
    detected = detect(repository(tmp_path, {f"p{n:02}/go.mod": "" for n in range(20)}))
    assert "p04 (Go) and 15 more" in detected.hints[0]


def test_facts_for_the_agent_follow_the_files(tmp_path: Path) -> None:
    """The manager and the layout are said, what is not there is not."""
    files = {"package.json": "{}", "yarn.lock": "", "tsconfig.json": "{}"}
    says = " ".join(detect(repository(tmp_path, files)).says)
    assert "managed with yarn" in says
    assert "JavaScript whose types are checked" in says
    assert "pnpm add" not in says
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "sum.test.ts").write_text("")
    says = " ".join(detect(tmp_path).says)
    assert "The code is TypeScript" in says
    assert "Tests stand beside the code" in says


def test_a_stack_of_ones_own_is_a_file(tmp_path: Path) -> None:
    """A TOML file in a directory of the user's adds a stack, or replaces one of ours."""
    own = tmp_path / "stacks"
    own.mkdir()
    (own / "zig.toml").write_text(
        'name = "zig"\ntitle = "Zig"\nmarks = ["build.zig"]\n'
        '[[checks]]\npurpose = "tests"\ncommand = ["zig", "build", "test"]\n'
    )
    (own / "rust.toml").write_text('name = "rust"\ntitle = "Oxide"\nmarks = ["Cargo.toml"]\n')
    root = repository(tmp_path / "here", {"build.zig": "", "Cargo.toml": ""})
    detected = detect(root, directories=[own])
    assert detected.title == "Oxide and Zig"
    assert commands(detected) == ["zig build test"]


@pytest.mark.parametrize(
    "content", ["name = ", 'name = "x"\n', 'name = "x"\ntitle = "X"\nmark = []\n']
)
def test_a_broken_stack_file_is_named(content: str, tmp_path: Path) -> None:
    """A table that cannot be read is an error with its place, not a stack that is missing."""
    (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(InputError, match=r"mine\.toml"):
        load_stacks([tmp_path])


def test_every_slot_of_our_own_table_can_be_filled() -> None:
    """No command of ours has a slot that its tools leave empty by mistake."""
    for stack in load_stacks():
        slots = {w[1:-1] for check in stack.checks for w in check.command if w.startswith("{")}
        for tool in stack.tools:
            assert slots <= set(tool.words), (stack.name, tool.title)
        if slots:
            assert not stack.tools[-1].if_any, f"{stack.name} needs a tool that always fits"
