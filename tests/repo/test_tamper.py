"""Weakened tests are found, honest work on tests is not: tables of both."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.repo import tamper
from ralphloop.repo.census import count
from ralphloop.repo.snapshot import Change
from ralphloop.repo.tamper import Review, review
from tests.repo.sandbox import Sandbox
from tests.timing import assert_linear, repeated

Files = Mapping[str, str]


def _review(before: Files, after: Files, *checks: list[str]) -> Review:
    """What is found between two given states."""
    letters = {(True, False): "D", (False, True): "A"}
    changes = [
        Change(
            path=path,
            status=letters.get((path in before, path in after), "M"),
            before=f"before {path}" if path in before else None,
            after=f"after {path}" if path in after else None,
        )
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]
    sides = {f"before {path}": text.encode() for path, text in before.items()}
    sides |= {f"after {path}": text.encode() for path, text in after.items()}
    return review(changes, lambda names: {name: sides[name] for name in names}, checks)


def _kinds(before: Files, after: Files) -> list[str]:
    return [finding.kind for finding in _review(before, after).findings]


PY = """\
import pytest

def test_add():
    assert add(1, 1) == 2

def test_sub():
    assert sub(2, 1) == 1

class TestMore:
    def test_mul(self):
        assert mul(2, 3) == 6
"""
JS = """\
describe('math', () => {
  it('adds', () => {
    expect(add(1, 1)).toBe(2);
  });
  it('subtracts', () => {
    expect(sub(2, 1)).toBe(1);
  });
});
"""
GO = """\
package calc

func TestAdd(t *testing.T) {
	if Add(1, 1) != 2 {
		t.Fatal("wrong")
	}
}

func TestSub(t *testing.T) {
	if Sub(2, 1) != 1 {
		t.Error("wrong")
	}
}
"""
RUST = """\
pub fn add(a: i32, b: i32) -> i32 { a + b }

#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(add(1, 1), 2);
    }
    #[tokio::test]
    async fn subtracts() {
        assert!(sub(2, 1) == 1);
    }
}
"""
JAVA = """\
class CalcTest {
    @Test
    void adds() {
        assertEquals(2, add(1, 1));
    }
    @Test public void subtracts() {
        assertEquals(1, sub(2, 1));
    }
}
"""
RUBY = """\
describe Calc do
  it "adds" do
    expect(add(1, 1)).to eq 2
  end
  it "subtracts" do
    expect(sub(2, 1)).to eq 1
  end
end
"""
CSHARP = """\
public class CalcTests {
    [Fact]
    public void Adds() {
        Assert.Equal(2, Add(1, 1));
    }
    [Fact]
    public async Task Subtracts() {
        Assert.Equal(1, Sub(2, 1));
    }
}
"""
PHP = """\
class CalcTest extends TestCase {
    public function testAdds(): void {
        $this->assertSame(2, add(1, 1));
    }
    public function testSubtracts(): void {
        $this->assertSame(1, sub(2, 1));
    }
}
"""

TAMPERED = {
    "python test file deleted": ({"tests/test_a.py": PY}, {}, "tests_removed"),
    "python test deleted": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("def test_sub():\n    assert sub(2, 1) == 1\n", "")},
        "tests_removed",
    ),
    "python tests commented out": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": "".join(f"# {line}\n" for line in PY.splitlines())},
        "tests_removed",
    ),
    "python file emptied": ({"tests/test_a.py": PY}, {"tests/test_a.py": ""}, "tests_removed"),
    "python test renamed so that it is not collected": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("def test_sub", "def disabled_sub")},
        "tests_removed",
    ),
    "python skip mark": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("def test_sub", '@pytest.mark.skip("later")\ndef test_sub')},
        "tests_skipped",
    ),
    "python skipif": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("def test_sub", "@pytest.mark.skipif(True)\ndef test_sub")},
        "tests_skipped",
    ),
    "python xfail": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("def test_sub", "@pytest.mark.xfail\ndef test_sub")},
        "tests_skipped",
    ),
    "python skip call": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("    assert sub", "    pytest.skip('x')\n    assert sub")},
        "tests_skipped",
    ),
    "python unittest skip": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("class TestMore", "@unittest.skip('x')\nclass TestMore")},
        "tests_skipped",
    ),
    "python module skip": (
        {"tests/test_a.py": PY},
        {
            "tests/test_a.py": PY.replace(
                "import pytest", "import pytest\npytestmark = pytest.mark.skip"
            )
        },
        "tests_skipped",
    ),
    "python class hidden": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("class TestMore:", "class TestMore:\n    __test__ = False")},
        "tests_skipped",
    ),
    "python skipped under another name": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("def test_sub", "@pytest.mark.skip\ndef test_subtract")},
        "tests_skipped",
    ),
    "python test emptied": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("    assert sub(2, 1) == 1", "    pass")},
        "tests_emptied",
    ),
    "python assert true": (
        {"tests/test_a.py": "def test_x():\n    y = f()\n    assert y == 1\n"},
        {"tests/test_a.py": "def test_x():\n    assert True\n"},
        "tests_emptied",
    ),
    "python assertions thinned out": (
        {"tests/test_a.py": "def test_x():\n" + "    assert f(1)\n" * 12},
        {"tests/test_a.py": "def test_x():\n" + "    assert f(1)\n" * 2},
        "asserts_removed",
    ),
    "broken python loses its tests": (
        {"tests/test_a.py": PY + "def broken(:\n"},
        {"tests/test_a.py": "def broken(:\n"},
        "tests_removed",
    ),
    "javascript deleted": ({"a.test.js": JS}, {}, "tests_removed"),
    "javascript it.skip": (
        {"a.test.js": JS},
        {"a.test.js": JS.replace("it('subtracts'", "it.skip('subtracts'")},
        "tests_skipped",
    ),
    "javascript xit": (
        {"a.test.js": JS},
        {"a.test.js": JS.replace("it('subtracts'", "xit('subtracts'")},
        "tests_skipped",
    ),
    "javascript describe.skip": (
        {"a.test.js": JS},
        {"a.test.js": JS.replace("describe('math'", "describe.skip('math'")},
        "tests_skipped",
    ),
    "javascript it.only": (
        {"a.test.js": JS},
        {"a.test.js": JS.replace("it('adds'", "it.only('adds'")},
        "tests_skipped",
    ),
    "javascript emptied": (
        {"a.test.ts": JS},
        {"a.test.ts": JS.replace("    expect(sub(2, 1)).toBe(1);\n", "")},
        "tests_emptied",
    ),
    "go skipped": (
        {"calc_test.go": GO},
        {"calc_test.go": GO.replace("	if Sub", '	t.Skip("later")\n	if Sub')},
        "tests_skipped",
    ),
    "go deleted": (
        {"calc_test.go": GO},
        {"calc_test.go": GO.split("func TestSub", maxsplit=1)[0]},
        "tests_removed",
    ),
    "go build tag": (
        {"calc_test.go": GO},
        {"calc_test.go": f"//go:build ignore\n\n{GO}"},
        "tests_skipped",
    ),
    "rust ignored": (
        {"src/lib.rs": RUST},
        {"src/lib.rs": RUST.replace("#[test]\n", "#[test]\n    #[ignore]\n")},
        "tests_skipped",
    ),
    "rust attribute removed": (
        {"src/lib.rs": RUST},
        {"src/lib.rs": RUST.replace("    #[test]\n", "")},
        "tests_removed",
    ),
    "java disabled": (
        {"src/test/java/CalcTest.java": JAVA},
        {"src/test/java/CalcTest.java": JAVA.replace("@Test\n", "@Test\n    @Disabled\n")},
        "tests_skipped",
    ),
    "java removed": (
        {"src/test/java/CalcTest.java": JAVA},
        {"src/test/java/CalcTest.java": JAVA.replace("@Test public", "public")},
        "tests_removed",
    ),
    "ruby xit": (
        {"spec/a_spec.rb": RUBY},
        {"spec/a_spec.rb": RUBY.replace('it "subtracts"', 'xit "subtracts"')},
        "tests_skipped",
    ),
    "ruby pending": (
        {"spec/a_spec.rb": RUBY},
        {"spec/a_spec.rb": RUBY.replace("    expect(sub", '    pending "x"\n    expect(sub')},
        "tests_skipped",
    ),
    "c# skip": (
        {"tests/A.cs": CSHARP},
        {"tests/A.cs": CSHARP.replace("[Fact]", '[Fact(Skip = "x")]', 1)},
        "tests_skipped",
    ),
    "php skipped": (
        {"tests/A.php": PHP},
        {
            "tests/A.php": PHP.replace(
                "        $this->assertSame(1",
                "        $this->markTestSkipped();\n        $this->assertSame(1",
            )
        },
        "tests_skipped",
    ),
    "unknown language deleted": ({"tests/run_test.lua": "check(1)\n"}, {}, "tests_removed"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_weakened_test_is_challenged(name: str) -> None:
    """Each way to make a test easier is found, and called what it is."""
    before, after, kind = TAMPERED[name]
    assert _kinds(before, after) == [kind]


HONEST = {
    "new tests": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": f"{PY}\ndef test_new():\n    assert 1 == f()\n"},
    ),
    "new test file": ({}, {"tests/test_a.py": PY}),
    "source only": ({"src/a.py": "x = 1\n"}, {"src/a.py": "x = 2\n"}),
    "file moved": ({"tests/test_a.py": PY}, {"tests/unit/test_b.py": PY}),
    "file moved and edited": (
        {"tests/test_a.py": PY},
        {"tests/unit/test_b.py": PY.replace("add(1, 1) == 2", "add(2, 2) == 4")},
    ),
    "tests renamed": (
        {"tests/test_a.py": PY},
        {"tests/test_a.py": PY.replace("test_add", "test_plus")},
    ),
    "file split in two": (
        {"tests/test_a.py": PY},
        {
            "tests/test_a.py": PY.split("class", maxsplit=1)[0],
            "tests/test_b.py": f"class{PY.split('class')[1]}",
        },
    ),
    "unittest turned into pytest": (
        {
            "tests/test_a.py": "class T(TestCase):\n    def test_x(self):\n        self.assertEqual(1, f())\n"
        },
        {"tests/test_a.py": "def test_x():\n    assert f() == 1\n"},
    ),
    "tests folded into a table": (
        {"tests/test_a.py": PY},
        {
            "tests/test_a.py": "@pytest.mark.parametrize('f, n', [(add, 2), (sub, 1), (mul, 6)])\n"
            "def test_all(f, n):\n    assert f() == n\n"
        },
    ),
    "assertions moved to a helper": (
        {"tests/test_a.py": "def test_x():\n    r = f()\n    assert r.a\n    assert r.b\n"},
        {
            "tests/test_a.py": "def check(r):\n    assert r.a\n    assert r.b\n\n"
            "def test_x():\n    check(f())\n"
        },
    ),
    "skip removed": (
        {"tests/test_a.py": PY.replace("def test_sub", "@pytest.mark.skip\ndef test_sub")},
        {"tests/test_a.py": PY},
    ),
    "a new test that is skipped from the start": (
        {"tests/test_a.py": PY},
        {
            "tests/test_a.py": f"{PY}\n@pytest.mark.skipif(WINDOWS)\ndef test_posix():\n    assert f()\n"
        },
    ),
    "a skipped test deleted and a running one added": (
        {"a.test.js": JS.replace("it('adds'", "it.skip('adds'")},
        {"a.test.js": JS.replace("it('adds'", "it('multiplies'")},
    ),
    "javascript to typescript": ({"a.test.js": JS}, {"a.test.ts": JS}),
    "javascript made async": (
        {"a.test.js": JS},
        {"a.test.js": JS.replace("() => {\n    expect", "async () => {\n    await expect")},
    ),
    "javascript folded into a table": (
        {"a.test.js": JS},
        {
            "a.test.js": "describe('math', () => {\n  it.each([\n    [add, 2],\n    [sub, 1],\n"
            "  ])('computes %s', (f, n) => {\n    expect(f()).toBe(n);\n  });\n});\n"
        },
    ),
    "go subtests": (
        {"calc_test.go": GO},
        {
            "calc_test.go": "func TestAll(t *testing.T) {\n\tfor _, c := range []c{\n\t\t{1, 2},\n"
            "\t\t{2, 3},\n\t} {\n\t\tt.Run(c.name, func(t *testing.T) { t.Error(1) })\n\t}\n}\n"
        },
    ),
    "rust source edited": (
        {"src/lib.rs": RUST},
        {"src/lib.rs": RUST.replace("{ a + b }", "{ b + a }")},
    ),
    "rust tests moved to their own file": (
        {"src/lib.rs": RUST},
        {
            "src/lib.rs": RUST.split("#[cfg(test)]", maxsplit=1)[0],
            "tests/all.rs": RUST.split("mod tests {")[1],
        },
    ),
    "java file renamed": (
        {"src/test/java/CalcTest.java": JAVA},
        {"src/test/java/CalculatorTest.java": JAVA},
    ),
    "fixture deleted": ({"tests/data/old.json": "{}"}, {}),
    "snapshot deleted": ({"tests/__snapshots__/a.snap": "x"}, {}),
    "test helper deleted": ({"tests/helpers.py": "def f():\n    return 1\n"}, {}),
    "unknown language moved": (
        {"tests/run_test.lua": "check(1)\n"},
        {"tests/all_test.lua": "check(1)\n"},
    ),
    "a regular expression is no test": (
        {"src/a.js": "if (re.test('x')) {}\n"},
        {"src/a.js": "export {}\n"},
    ),
    "a function that tests in source": (
        {"src/a.py": "def tester():\n    pass\n"},
        {"src/a.py": ""},
    ),
    "binary that pretends": ({"tests/test_x.py": "\0\1\2"}, {"tests/test_x.py": "\3"}),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_on_tests_is_not_challenged(name: str) -> None:
    """Moving, renaming, regrouping, adding: as many tests as before, and they still run."""
    before, after = HONEST[name]
    assert _kinds(before, after) == []


CONFIG_BEFORE = {
    "pyproject.toml": (
        '[project]\nname = "x"\n'
        '[tool.pytest.ini_options]\naddopts = "-ra"\ntestpaths = ["tests", "integration"]\n'
        '[tool.ruff.lint]\nselect = ["E", "F"]\nignore = ["D1"]\n'
        "[tool.mypy]\nstrict = true\n"
        "[tool.coverage.report]\nfail_under = 90\n"
    ),
    "setup.cfg": "[mypy]\nstrict = True\n[flake8]\nignore = E501\n[tool:pytest]\naddopts = -ra\n",
    "ruff.toml": 'lint.select = ["E", "F"]\n',
    "package.json": (
        '{"scripts": {"test": "jest", "lint": "eslint .", "start": "node .", '
        '"build": "docker build ."}, "jest": {"coverageThreshold": {"global": {"lines": 80}}}}'
    ),
    "Makefile": "test: deps\n\tpytest -q\nlint:\n\truff check .\nclean:\n\trm -rf build\n",
    "tsconfig.json": '{\n  // strict\n  "compilerOptions": {"strict": true, "noUnusedLocals": true}\n}',
    ".eslintrc.json": '{\n  "rules": {\n    "eqeqeq": "error"\n  }\n}',
    ".eslintignore": "dist\n",
    "conftest.py": "import pytest\n",
    "jest.config.js": "module.exports = {\n};\n",
    ".pre-commit-config.yaml": "repos:\n- hooks:\n  - id: ruff\n  - id: mypy\n",
    ".github/workflows/ci.yml": "jobs:\n  test:\n    steps:\n      - run: pytest\n",
    "pom.xml": "<project>\n</project>\n",
}
WEAKENED = [
    ("pyproject.toml", '"-ra"', '"-ra --ignore=tests/slow"'),
    ("pyproject.toml", '"-ra"', '"-ra --deselect tests/a.py::x"'),
    ("pyproject.toml", '"-ra"', "\"-ra -k 'not slow'\""),
    ("pyproject.toml", '"-ra"', "\"-ra -m 'not slow'\""),
    ("pyproject.toml", '["tests", "integration"]', '["tests"]'),
    ("pyproject.toml", 'select = ["E", "F"]', 'select = ["E"]'),
    ("pyproject.toml", 'ignore = ["D1"]', 'ignore = ["D1", "F401"]'),
    (
        "pyproject.toml",
        "[tool.mypy]",
        '[tool.ruff.lint.per-file-ignores]\n"src/*" = ["F"]\n[tool.mypy]',
    ),
    ("pyproject.toml", "strict = true", "strict = false"),
    ("pyproject.toml", "strict = true\n", ""),
    ("pyproject.toml", "strict = true", 'strict = true\nexclude = ["src/hard"]'),
    (
        "pyproject.toml",
        "strict = true",
        'strict = true\n[[tool.mypy.overrides]]\nmodule = "a"\nignore_errors = true',
    ),
    ("pyproject.toml", "fail_under = 90", "fail_under = 50"),
    ("setup.cfg", "strict = True", "strict = False"),
    ("setup.cfg", "ignore = E501", "ignore = E501, F401"),
    ("setup.cfg", "addopts = -ra", "addopts = -ra --ignore=tests/slow"),
    ("setup.cfg", "strict = True", "strict = True\n[mypy-src.hard]\nignore_errors = True"),
    ("ruff.toml", '["E", "F"]', '["E"]'),
    ("package.json", '"jest"', '"true"'),
    ("package.json", '"jest"', '"exit 0"'),
    ("package.json", '"jest"', "\"echo 'no tests'\""),
    ("package.json", '"jest"', '"jest || true"'),
    ("package.json", '"jest"', '"jest --passWithNoTests"'),
    ("package.json", '"jest"', '"jest -t adds"'),
    ("package.json", '"test": "jest", ', ""),
    ("package.json", '"eslint ."', '"eslint . || exit 0"'),
    ("package.json", '"lines": 80', '"lines": 10'),
    ("Makefile", "pytest -q", "pytest -q || true"),
    ("Makefile", "pytest -q", "pytest -q --ignore=tests/hard"),
    ("Makefile", "\truff check .", "\t@true"),
    ("Makefile", "lint:\n\truff check .\n", ""),
    ("tsconfig.json", '"strict": true', '"strict": false'),
    ("tsconfig.json", ', "noUnusedLocals": true', ""),
    (".eslintrc.json", '"eqeqeq": "error"', '"eqeqeq": "off"'),
    (".eslintrc.json", '"eqeqeq": "error"', '"eqeqeq": 0'),
    (".eslintignore", "dist\n", "dist\nsrc/hard.js\n"),
    ("conftest.py", "import pytest\n", 'import pytest\ncollect_ignore = ["test_hard.py"]\n'),
    (
        "conftest.py",
        "import pytest\n",
        "import pytest\ndef pytest_collection_modifyitems(items):\n    items.clear()\n",
    ),
    ("jest.config.js", "{\n", "{\n  testPathIgnorePatterns: ['hard'],\n"),
    (".pre-commit-config.yaml", "  - id: mypy\n", ""),
    (".github/workflows/ci.yml", "run: pytest", "run: pytest || true"),
    (".github/workflows/ci.yml", "steps:", "continue-on-error: true\n    steps:"),
    ("pom.xml", "<project>\n", "<project>\n<skipTests>true</skipTests>\n"),
]


@pytest.mark.parametrize("path, old, new", WEAKENED)
def test_a_weakened_check_is_challenged(path: str, old: str, new: str) -> None:
    """Options, rules, thresholds and scripts that ask less than before are found."""
    before = CONFIG_BEFORE[path]
    assert old in before
    after = before.replace(old, new)
    findings = _review({path: before}, {path: after}).findings
    assert findings
    assert all(f.path == path for f in findings)


STRENGTHENED = [
    ("pyproject.toml", '"-ra"', '"-ra --strict-markers"'),
    ("pyproject.toml", '["tests", "integration"]', '["tests", "integration", "e2e"]'),
    ("pyproject.toml", 'select = ["E", "F"]', 'select = ["E", "F", "B"]'),
    ("pyproject.toml", 'ignore = ["D1"]', "ignore = []"),
    ("pyproject.toml", "fail_under = 90", "fail_under = 95"),
    ("pyproject.toml", 'name = "x"', 'name = "x"\ndependencies = ["click"]'),
    (
        "pyproject.toml",
        "strict = true",
        'strict = true\n[[tool.mypy.overrides]]\nmodule = "boto3"\nignore_missing_imports = true',
    ),
    ("setup.cfg", "ignore = E501", "ignore = "),
    ("setup.cfg", "strict = True", "strict = yes"),
    ("package.json", '"jest"', '"jest --coverage"'),
    ("package.json", '"jest"', '"vitest run"'),
    ("package.json", '"node ."', '"true"'),
    ("package.json", '"docker build ."', '"docker build -t app ."'),
    ("Makefile", "pytest -q", "pytest -q -x"),
    ("Makefile", "rm -rf build", "rm -rf build || true"),
    ("Makefile", "test: deps\n\tpytest -q", "test: deps unit e2e"),
    ("tsconfig.json", '"noUnusedLocals": true', '"noUnusedLocals": true, "noImplicitAny": true'),
    (".eslintrc.json", '"eqeqeq": "error"', '"eqeqeq": "error",\n    "curly": "error"'),
    ("conftest.py", "import pytest\n", "import pytest\n@pytest.fixture\ndef x():\n    return 1\n"),
    (".pre-commit-config.yaml", "  - id: mypy\n", "  - id: mypy\n  - id: black\n"),
    (".pre-commit-config.yaml", "  - id: ruff\n", "  - id: ruff-check\n"),
    ("pyproject.toml", 'ignore = ["D1"]', 'extend-ignore = [\n    "D1",\n]'),
    (".github/workflows/ci.yml", "- run: pytest", "- run: pytest\n      - run: mypy ."),
]


@pytest.mark.parametrize("path, old, new", STRENGTHENED)
def test_a_check_that_asks_more_or_the_same_is_not_challenged(
    path: str, old: str, new: str
) -> None:
    """Ordinary edits of configuration go through."""
    before = CONFIG_BEFORE[path]
    assert old in before
    assert _review({path: before}, {path: before.replace(old, new)}).challenges == ()


def test_a_new_configuration_file_is_not_challenged() -> None:
    """There was nothing before that it could have weakened."""
    assert _review({}, CONFIG_BEFORE).challenges == ()


def test_a_deleted_pipeline_is_challenged_and_a_deleted_configuration_is_not() -> None:
    """Settings may move to another file; the end of the pipeline needs an answer."""
    path = ".github/workflows/ci.yml"
    gone = _review({path: CONFIG_BEFORE[path]}, {})
    assert gone.challenges == (f"{path}: the pipeline was deleted",)
    assert _review({"setup.cfg": CONFIG_BEFORE["setup.cfg"]}, {}).challenges == ()


def test_the_script_that_a_check_runs_must_not_be_changed() -> None:
    """Whoever changes the judge is asked why; a test that is its own script may grow."""
    before = {"check.sh": "exit 1\n", "test_calc.py": PY}
    after = {"check.sh": "exit 0\n", "test_calc.py": f"{PY}\ndef test_new():\n    assert f()\n"}
    found = _review(before, after, ["./check.sh"], ["python", "test_calc.py"])
    assert found.challenges == ("check.sh, which a check runs, was changed",)
    assert _review({}, before, ["./check.sh"]).challenges == ()


def test_tests_added_counts_tests_that_run_and_assert() -> None:
    """Only tests that can fail are proof of anything."""
    assert _review({}, {"tests/test_a.py": PY}).tests_added == 3
    assert _review({"tests/test_a.py": PY}, {"tests/b/test_a.py": PY}).tests_added == 0
    assert _review({}, {"tests/test_a.py": "def test_x():\n    pass\n"}).tests_added == 0
    skipped = "@pytest.mark.skip\ndef test_x():\n    assert f()\n"
    assert _review({}, {"tests/test_a.py": skipped}).tests_added == 0
    assert (
        _review(
            {"src/lib.rs": RUST.split("#[cfg", maxsplit=1)[0]}, {"src/lib.rs": RUST}
        ).tests_added
        == 2
    )


def test_messages_name_place_and_tests() -> None:
    """A finding goes into the next prompt, so it must be clear by itself."""
    after = PY.replace("def test_sub():\n    assert sub(2, 1) == 1\n", "")
    found = _review({"tests/test_a.py": PY}, {"tests/test_a.py": after})
    assert found.challenges == ("1 test was removed in tests/test_a.py: test_sub",)


def test_a_real_repository_is_reviewed(box: Sandbox) -> None:
    """The whole way over git: a deleted test file, and the same file moved."""
    box.write("tests/test_a.py", PY)
    box.commit("tests")
    measure = box.snapshotter()
    before = measure.tree()
    box.remove("tests/test_a.py")
    gone = review(measure.diff(before, measure.tree()).changes, measure.contents)
    assert [finding.kind for finding in gone.findings] == ["tests_removed"]
    box.write("tests/unit/test_b.py", PY)
    now = measure.diff(before, measure.tree()).changes
    assert review(now, measure.contents).findings == ()


def test_content_that_is_too_large_to_read_is_no_evidence(box: Sandbox) -> None:
    """A test file beyond the limit is left out on both sides, instead of looking deleted."""
    box.write("tests/test_big.py", PY + "# padding\n" * 150_000)
    box.write("tests/test_a.py", PY)
    box.commit("tests")
    measure = box.snapshotter()
    before = measure.tree()
    box.write("tests/test_big.py", PY)
    now = measure.diff(before, measure.tree()).changes
    assert review(now, measure.contents).findings == ()


def test_only_so_many_files_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of a hundred thousand files costs no more than a large one."""
    monkeypatch.setattr(tamper, "MAX_FILES", 2)
    files = {f"tests/test_{n}.py": PY for n in range(5)}
    assert _review({}, files).tests_added == 6


def test_doubtful_source_is_counted_without_a_word() -> None:
    """Warnings about somebody's escapes do not reach our console."""
    assert count("test_a.py", b"def test_x():\n    assert f('\\d')\n").weight == 1


@pytest.mark.parametrize(
    "path, source",
    {
        "test_a.py": "@pytest.mark.parametrize('n', CASES)\ndef test_n(n):\n    assert f(n)\n",
        "a.test.js": "it.each(CASES)('%s', n => {\n  expect(f(n)).toBe(1);\n});\n",
    }.items(),
)
def test_a_table_that_cannot_be_seen_stands_for_three_tests(path: str, source: str) -> None:
    """Folding three tests into a table made elsewhere is no loss; folding four is one."""
    assert count(path, source.encode()).weight == 3


@given(
    st.sampled_from(["a.py", "a.js", "a.go", "a.rs", "A.java", "a.rb", "a.cs", "a.php"]), st.text()
)
def test_any_source_can_be_counted(path: str, text: str) -> None:
    """No text makes the counting fail."""
    assert count(f"tests/{path}", text.encode("utf-8", "surrogatepass")).weight >= 0


@pytest.mark.parametrize("suffix", ["py", "js", "go", "rs", "java", "rb", "cs", "c"])
@pytest.mark.parametrize(
    "piece", ["it('x', () => {\n", "@a ", "[", "((", "#[test]\n", "void a(", "x " * 200]
)
def test_hostile_source_is_counted_in_linear_time(suffix: str, piece: str) -> None:
    """Eight times the source costs about eight times the counting, whatever it is made of."""
    assert_linear(repeated(piece), lambda text: count(f"tests/a.{suffix}", text.encode()), 4_000)
