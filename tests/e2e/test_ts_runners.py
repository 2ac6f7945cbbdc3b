"""TypeScript that is compiled on the way to its tests: named results, and stories that are proven."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.core.model import CheckStatus
from ralphloop.repo.checks import behaves, check_of, run_checks
from tests.e2e.clis import CLIS
from tests.loop.guards import told
from tests.loop.projects import sandbox, story

IGNORED = ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\nnode_modules\n"
CHECK = ["npm", "test", "--silent"]
CALC = "export const double = (x: number): number => 2 * x;\n"
OPTIONS = {"target": "es2022", "strict": True, "noUnusedLocals": True, "types": []}
COMMONJS = {**OPTIONS, "module": "commonjs", "esModuleInterop": True}
MODULES = {**OPTIONS, "module": "esnext", "moduleResolution": "bundler", "isolatedModules": True}
JEST = 'import { expect, test } from "@jest/globals";\n'
NODE = 'import { test } from "node:test";\nimport assert from "node:assert";\n'
HEADS = {"ts-jest-29": JEST, "ts-jest-29-esm": JEST, "tsx-4": NODE}
ASSERTS = {
    "ts-jest-29": "expect({}).toBe({});",
    "ts-jest-29-esm": "expect({}).toBe({});",
    "tsx-4": "assert.strictEqual({}, {});",
}
PACKAGES: dict[str, dict[str, object]] = {
    "ts-jest-29": {"scripts": {"test": "jest"}, "jest": {"preset": "ts-jest"}},
    "ts-jest-29-esm": {
        "type": "module",
        "scripts": {
            "test": "node --experimental-vm-modules node_modules/jest/bin/jest.js",
        },
        "jest": {
            "preset": "ts-jest/presets/default-esm",
            "moduleNameMapper": {"^(\\.{1,2}/.*)\\.js$": "$1"},
        },
    },
    "tsx-4": {"type": "module", "scripts": {"test": "node --import tsx --test test/*.test.ts"}},
}
AGENT = """
works = json.loads((STATE / "works.json").read_text())
for path, text in works[STORY].items():
    before = pathlib.Path(path).read_text() if os.path.exists(path) else ""
    write(path, before + text)
done(words=f"{STORY} is done.")
"""

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def _asserted(runner: str, made: str, expected: str) -> str:
    return ASSERTS[runner].format(made, expected)


def _test_of(runner: str, name: str, body: str) -> str:
    suffix = ".js" if runner.endswith("-esm") else ""
    head = f'{HEADS[runner]}import {{ {name} }} from "../src/calc{suffix}";\n'
    return f'{head}test("{name}", () => {{ {body} }});\n'


def _files(runner: str) -> dict[str, str]:
    options = COMMONJS if runner == "ts-jest-29" else MODULES
    return {
        ".gitignore": IGNORED,
        "package.json": json.dumps(PACKAGES[runner]),
        "tsconfig.json": json.dumps({"compilerOptions": options}),
        "src/calc.ts": CALC,
        "test/calc.test.ts": _test_of(runner, "double", _asserted(runner, "double(2)", "4")),
    }


def _packages(runner: str) -> Path:
    return CLIS[runner.removesuffix("-esm")].home / "node_modules"


@pytest.mark.parametrize("runner", ["ts-jest-29", "tsx-4"])
def test_each_test_has_a_name_and_a_wrong_type_is_no_failing_test(
    runner: str, tmp_path: Path
) -> None:
    """What does not compile cannot be loaded, as a name that is missing without the story."""
    for path, text in _files(runner).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    broken = _test_of(runner, "gone", _asserted(runner, "gone(2)", "4"))
    (tmp_path / "test/gone.test.ts").write_text(broken)
    (tmp_path / "node_modules").symlink_to(_packages(runner))
    check = check_of(CHECK, 300)
    (result,) = run_checks([check], tmp_path)
    assert result.report is not None, result.output_tail
    assert result.status is CheckStatus.FAILED
    assert list(result.report.passed) == ["test/calc.test.ts > double"]
    assert list(result.report.errors) == ["test/gone.test.ts"]
    assert not result.report.failed
    (tmp_path / "test/gone.test.ts").unlink()
    assert behaves(check, tmp_path, list(result.report.passed), tmp_path / "note")


@pytest.mark.parametrize(
    "runner",
    [
        "tsx-4",
        pytest.param("ts-jest-29", marks=pytest.mark.slow),
        pytest.param("ts-jest-29-esm", marks=pytest.mark.slow),
    ],
)
def test_a_result_that_is_looked_at_proves_and_a_type_does_not(runner: str, tmp_path: Path) -> None:
    """Its function does something else in each run: nothing that was compiled before is taken."""
    works = {
        "looks": {
            "src/calc.ts": "export const plus = (x: number): number => x + 3;\n",
            "test/plus.test.ts": _test_of(runner, "plus", _asserted(runner, "plus(1)", "4")),
        },
        "calls": {
            "src/calc.ts": "export const minus = (x: number): number => x - 3;\n",
            "test/minus.test.ts": _test_of(
                runner, "minus", _asserted(runner, "typeof minus(1)", '"number"')
            ),
        },
    }
    box = sandbox(
        tmp_path,
        AGENT,
        stories=[story(name, f"Add {name}") for name in works],
        checks=[CHECK],
        files=_files(runner),
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    (box.state / "works.json").write_text(json.dumps(works))
    (box.root / "node_modules").symlink_to(_packages(runner))
    done = box.run("--max-iterations", "2", timeout=800)
    found = {it.story.id: str(it.verdict.grade) for it in box.records() if it.story is not None}
    assert found == {"looks": "verified", "calls": "checked"}, told(done)
