"""Mutants of every kind of code, tried within one start of pytest or unittest."""

from __future__ import annotations

import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from ralphloop.core.mutation import Came, ChangedPiece, Mutation, concluded_from
from ralphloop.proof.python import pieces_of
from ralphloop.repo.checks import check_of
from ralphloop.repo.mutant_runs import MutantJob, MutantRun, can_be_mutated, run_mutants
from ralphloop.repo.runners import find_runner

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
UNITTEST = (sys.executable, "-m", "unittest", "discover", "-s", "tests", "-t", ".")

CODE = """
import dataclasses
import enum
import functools

RATE = 2
NAMES = {
    "a": 1,
    "b": 5,
}


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: int = 3


def total(items):
    return sum(items)


@functools.lru_cache(maxsize=None)
def cached(x):
    return x * RATE


def only_called(x):
    return x + 1


def squares(n):
    for i in range(n):
        yield i * i


class Box:
    def __init__(self, size):
        self.size = size

    @property
    def area(self):
        return self.size**2

    @staticmethod
    def made(size):
        return Box(size)

    async def later(self):
        return self.size


def twice(function):
    def inner(x):
        return function(function(x))

    return inner


@twice
def more(x):
    return x + 1


def refuse(x):
    if x < 0:
        raise ValueError(x)
    return x


def built():
    return [1, 2, 3]


TABLE = built()


def elsewhere():
    return RATE + 1


def nowhere():
    return RATE + 2
"""
TESTS = """
import asyncio
import subprocess
import sys
import unittest

import shop


def setUpModule():
    global SHARED
    SHARED = shop.Box.made(3)


class T(unittest.TestCase):
    def test_total(self):
        self.assertEqual(shop.total([1, 2]), 3)

    def test_cached(self):
        self.assertEqual(shop.cached(2), 4)
        self.assertEqual(shop.cached(2), 4)

    def test_called(self):
        shop.only_called(2)

    def test_squares(self):
        self.assertEqual(list(shop.squares(3)), [0, 1, 4])

    def test_area(self):
        self.assertEqual(SHARED.area, 9)

    def test_later(self):
        self.assertEqual(asyncio.run(shop.Box(4).later()), 4)

    def test_more(self):
        self.assertEqual(shop.more(1), 3)

    def test_refuse(self):
        with self.assertRaises(ValueError):
            shop.refuse(-1)

    def test_table(self):
        self.assertEqual(shop.TABLE, [1, 2, 3])
        self.assertEqual(shop.NAMES["b"], 5)
        self.assertEqual(shop.Point().x, 3)
        self.assertEqual(shop.Colour.RED.value, 1)

    def test_elsewhere(self):
        code = "import shop; print(shop.elsewhere())"
        ended = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE)
        self.assertEqual(ended.stdout, b"3\\n")
"""


def _project(root: Path, code: str, tests: str, **more: str) -> None:
    (root / "tests").mkdir(parents=True)
    (root / "tests" / "__init__.py").write_text("")
    (root / "shop.py").write_text(dedent(code))
    (root / "tests" / "test_shop.py").write_text(dedent(tests))
    for name, text in more.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


class _Tried:
    def __init__(self, pieces: Sequence[ChangedPiece], run: MutantRun) -> None:
        self.pieces = pieces
        self.run = run

    def came(self, name: str) -> list[Came]:
        """Of the mutants of a piece as a whole, in their order."""
        number = next(at for at, piece in enumerate(self.pieces) if piece.name == name)
        whole = [one for one in self.run.tried if one.piece == number]
        return [one.came for one in whole if not self.pieces[number].mutants[one.mutant].is_detail]

    def why(self, name: str) -> str:
        number = next(at for at, piece in enumerate(self.pieces) if piece.name == name)
        return next(one.why for one in self.run.tried if one.piece == number)

    @property
    def mutation(self) -> Mutation:
        return concluded_from(self.pieces, self.run.reach, self.run.tried)


def _tried(
    root: Path, argv: Sequence[str] = PYTEST, old: str | None = None, path: str = "shop.py"
) -> _Tried:
    before = dedent(old).encode() if old is not None else None
    pieces = pieces_of(path, before, (root / path).read_bytes())
    found = find_runner(argv, root)
    assert found is not None
    assert can_be_mutated(found)
    there = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    job = MutantJob(pieces=pieces, first=("tests/test_shop.py",), seconds=120.0, details_s=60.0)
    run = run_mutants(check_of(argv, 120.0), found, root, job)
    assert run is not None
    assert run.is_whole, run
    kept = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert kept == there, "nothing is written into the work tree"
    return _Tried(pieces, run)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("argv", [PYTEST, UNITTEST], ids=["pytest", "unittest"])
def test_every_kind_of_code_is_bent(tmp_path: Path, argv: Sequence[str]) -> None:
    """Caches, generators, properties, coroutines, decorators, constants, and what a test starts."""
    _project(tmp_path, CODE, TESTS)
    tried = _tried(tmp_path, argv)
    noticed = (
        "total() cached() squares() Box.area() Box.made() Box.later() twice.inner() more() built()"
        " elsewhere() RATE NAMES TABLE Point.x Colour.RED"
    ).split()
    assert {name: tried.came(name)[-1] for name in noticed} == dict.fromkeys(noticed, Came.NOTICED)
    assert tried.came("refuse()") == [Came.UNTRIED, Came.NOTICED]
    assert tried.came("only_called()") == [Came.SURVIVED]
    assert tried.came("nowhere()") == [Came.UNTRIED]
    assert tried.why("nowhere()") == "no test runs it"
    assert [one.name for one in tried.mutation.survivors] == ["only_called()", "Colour.BLUE"]


def test_a_changed_function_is_proven_by_what_it_did_before(tmp_path: Path) -> None:
    """Put back as it was, alone, it is noticed, though the rest of the new code stays."""
    old = "def half(x):\n    return x // 2\n"
    _project(
        tmp_path,
        "def half(x):\n    return x / 2\n\n\ndef third(x):\n    return x / 3\n",
        "from shop import half, third\n\n\ndef test_half():\n    assert half(3) == 1.5\n    third(3)\n",
    )
    tried = _tried(tmp_path, old=old)
    assert tried.came("half()") == [Came.NOTICED]
    first = tried.mutation.watched[0]
    assert (first.test, first.what) == ("tests/test_shop.py::test_half", "is as it was before")
    assert tried.came("third()") == [Came.SURVIVED]


def test_settings_of_the_project_do_not_get_in_the_way(tmp_path: Path) -> None:
    """Many processes, the first failure, no plugins, coverage of a src layout: all the same."""
    _project(
        tmp_path,
        "",
        """
        import pytest
        from pack.shop import total


        @pytest.fixture(scope="session")
        def made():
            return total([1, 2])


        @pytest.mark.parametrize("way", [1, 2])
        def test_total(made, way, tmp_path):
            (tmp_path / "x").write_text("x")
            assert made == 3


        def test_red():
            assert False
        """,
        src__pack____init___dot_py="",
        src__pack__shop_dot_py="def total(items):\n    return sum(items)\n",
        pyproject_dot_toml="""
        [tool.pytest.ini_options]
        pythonpath = ["src"]
        addopts = "-n 2 -x -p no:doctest --dist loadfile"
        """,
    )
    (tmp_path / "src" / "pack" / "__init__.py").touch()
    tried = _tried(tmp_path, path="src/pack/shop.py")
    assert tried.came("total()") == [Came.NOTICED]
    assert tried.run.reach.names == ("tests/test_shop.py::test_total",)


def test_what_hangs_eats_memory_or_ends_the_process_is_reached_and_not_noticed(
    tmp_path: Path,
) -> None:
    """A mutant that takes its test down has not been looked at."""
    _project(
        tmp_path,
        """
        import os


        def step(n):
            return n - n


        def wait(n):
            while step(n):
                pass
            return n * 2


        def code(n):
            return n - n


        def leave(n):
            if code(n):
                os._exit(3)
            return n * 2


        def size(n):
            return n * 0


        def take(n):
            return len([0] * (size(n) << 40)) + n
        """,
        """
        import shop


        def test_wait():
            assert shop.wait(2) == 4


        def test_leave():
            assert shop.leave(2) == 4


        def test_take():
            assert shop.take(2) == 2
        """,
    )
    tried = _tried(tmp_path)
    for name in ("step()", "code()", "size()"):
        assert tried.came(name) == [Came.BROKE], name
    for name in ("wait()", "leave()", "take()"):
        assert tried.came(name) == [Came.NOTICED], name


def test_a_loop_that_never_ends_is_known_by_what_it_computes(tmp_path: Path) -> None:
    """Also where a start of its own is granted ten seconds just to load everything."""
    _project(
        tmp_path,
        "STEP = 2\n\n\ndef wait():\n    while STEP % 2:\n        pass\n    return STEP\n",
        "import shop\n\n\ndef test_wait():\n    assert shop.wait() == 2\n",
    )
    tried = _tried(tmp_path)
    assert tried.came("STEP") == [Came.BROKE]
    assert tried.run.took_s < 10


def test_a_mutant_that_breaks_loading_proves_nothing(tmp_path: Path) -> None:
    """Only what fails inside a running test counts."""
    _project(
        tmp_path,
        "def known():\n    return ['a', 'b']\n\n\nA, B = known()\n",
        "import shop\n\n\ndef test_a():\n    assert shop.A == 'a'\n",
    )
    assert _tried(tmp_path).came("known()") == [Came.UNTRIED]


def test_tests_that_are_not_steady_prove_nothing(tmp_path: Path) -> None:
    """What fails by chance is not noticed by anybody."""
    _project(
        tmp_path,
        "def total(items):\n    return sum(items)\n",
        """
        import os

        import shop


        def test_total(tmp_path_factory):
            shop.total([1])
            place = tmp_path_factory.getbasetemp().parent / "seen"
            times = int(place.read_text()) if place.exists() else 0
            place.write_text(str(times + 1))
            assert times != 1
        """,
    )
    tried = _tried(tmp_path)
    assert tried.came("total()") == [Came.UNTRIED]
    assert tried.why("total()") == "its tests do not do the same twice"


_HALF = """
class Warned(UserWarning):
    pass


def half(x):
    assert x
    return x / 2


def third(x):
    return x / 3
"""
_TEST_OF_HALF = """
import shop


def test_half():
    assert shop.half(3) == 1.5
"""
_INI = "[pytest]\n{}\n"
_PYTEST_SCRIPT = (str(Path(sys.executable).with_name("pytest")), "-q", "-p", "no:cacheprovider")
_FILTER = _INI.format("pythonpath = .\nfilterwarnings =\n    error\n    ignore::shop.Warned")


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("argv", "more"),
    [
        pytest.param(PYTEST, {"pytest_dot_ini": _FILTER}, id="a filter of warnings"),
        pytest.param(_PYTEST_SCRIPT, {"pytest_dot_ini": _FILTER}, id="the program pytest"),
        pytest.param((*PYTEST, "-n", "2"), {"pytest_dot_ini": _FILTER}, id="xdist"),
        pytest.param(
            (*PYTEST, "--import-mode=importlib"), {"pytest_dot_ini": _FILTER}, id="importlib"
        ),
        pytest.param((*PYTEST, "-p", "shop"), {}, id="a plugin by argument"),
        pytest.param(
            PYTEST, {"pytest_dot_ini": _INI.format("addopts = -p shop")}, id="a plugin by settings"
        ),
        pytest.param(PYTEST, {"conftest_dot_py": 'pytest_plugins = ["shop"]'}, id="a conftest"),
        pytest.param(
            PYTEST,
            {
                "shop-1.dist-info__METADATA": "Metadata-Version: 2.1\nName: shop\nVersion: 1\n",
                "shop-1.dist-info__RECORD": "shop.py,,\n",
                "shop-1.dist-info__entry_points.txt": "[pytest11]\nshop = shop\n",
            },
            id="a plugin that is installed",
        ),
    ],
)
def test_a_product_that_pytest_itself_imports_is_watched(
    tmp_path: Path, argv: Sequence[str], more: dict[str, str]
) -> None:
    """By a filter, as a plugin, from a conftest: what its tests run is known all the same."""
    _project(tmp_path, _HALF, _TEST_OF_HALF, **more)
    tried = _tried(tmp_path, argv)
    assert tried.came("half()") == [Came.NOTICED], tried.run
    assert tried.why("third()") == "no test runs it"


def test_a_plugin_in_a_pytest_that_a_test_starts_is_bent(tmp_path: Path) -> None:
    """Tests of a plugin start pytest with it: what that runs of it is known, too."""
    _project(
        tmp_path,
        "def pytest_report_header():\n    return 'half ' + str(3 / 2)\n",
        """
        import subprocess
        import sys


        def test_header(tmp_path):
            argv = [sys.executable, "-m", "pytest", "-p", "shop", "-c", "/dev/null", str(tmp_path)]
            ended = subprocess.run(argv, stdout=subprocess.PIPE)
            assert b"half 1.5\\n" in ended.stdout
        """,
    )
    assert _tried(tmp_path).came("pytest_report_header()") == [Came.NOTICED]


@pytest.mark.parametrize("words", [PYTEST[1:], UNITTEST[1:]], ids=["pytest", "unittest"])
def test_what_was_imported_before_everything_is_not_called_unwatched(
    tmp_path: Path, words: Sequence[str]
) -> None:
    """Where nobody could see whether tests run a file, that is said, and no line is counted."""
    root = tmp_path / "project"
    in_class = "\n\nclass T(unittest.TestCase):\n    def test_half(self):\n        test_half()\n"
    _project(root, _HALF, f"import unittest\n{_TEST_OF_HALF}{in_class}")
    venv.create(tmp_path / "own", symlinks=True, with_pip=False)
    place = next((tmp_path / "own").glob("lib/python*/site-packages"))
    ours = Path(pytest.__file__).parent.parent
    line = f"import sys; sys.path.insert(0, {str(root)!r}); import shop"
    (place / "early.pth").write_text(f"{ours}\n{line}\n")
    tried = _tried(root, (str(tmp_path / "own" / "bin" / "python"), *words))
    assert tried.why("half()") == "its file was imported before the tests"
    assert tried.why("third()") == "its file was imported before the tests"
    assert tried.mutation.is_cut
    assert (tried.mutation.lines, tried.mutation.unwatched) == (0, ())


PROGRAM = """
import sys


def measure(text):
    return len(text.split())


def place(words):
    return len(words) - 1


def main(words):
    if len(words) != 1:
        print("one text", file=sys.stderr)
        return 2
    print(measure(words[place(words)]))
    return 0


def greet(name):
    print("hello " + name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""
STARTING = """
import subprocess
import sys


def run(*words, **more):
    return subprocess.run(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    )
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("start", ["'-m', 'shop'", "'shop.py'", "'./shop.py', env={}"])
def test_a_program_that_a_test_starts_is_bent(tmp_path: Path, start: str) -> None:
    """By its module or its path, with an environment of its own: what it prints is looked at."""
    words, _, more = start.partition(", env")
    end = f", env{more}" if more else ""
    _project(
        tmp_path,
        PROGRAM,
        f"""{STARTING}

def test_words():
    ended = run({words}, 'a b c'{end})
    assert ended.returncode == 0
    assert ended.stdout == b"3\\n"


def test_usage():
    ended = run({words}{end})
    assert ended.returncode == 2
""",
    )
    tried = _tried(tmp_path)
    watched = {one.name: one.test.partition("::")[2] for one in tried.mutation.watched}
    assert watched == {"measure()": "test_words", "main()": "test_usage"}
    assert tried.came("place()") == [Came.BROKE]
    assert tried.why("greet()") == "no test runs it"
    assert tried.mutation.is_proof


def test_how_a_program_ended_is_no_look_at_what_it_does(tmp_path: Path) -> None:
    """A test that asks for a good end alone notices nothing, also where the program falls over."""
    _project(
        tmp_path,
        PROGRAM,
        f"""{STARTING}

def test_words():
    assert run('-m', 'shop', 'a b c').returncode == 0


def test_checked():
    run('-m', 'shop', 'a b c', check=True)
""",
    )
    tried = _tried(tmp_path)
    assert tried.mutation.watched == ()
    assert [one.name for one in tried.mutation.survivors] == ["measure()"]
    assert tried.came("place()") == [Came.BROKE]


SERVER = """
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

KEPT = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(listed() if self.path == "/kept" else {"well": True})

    def do_POST(self):
        KEPT.append(self.path)
        self.answer({"kept": self.path})

    def answer(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


def listed():
    return {"all": [it.strip("/") for it in KEPT]}


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
"""


@pytest.mark.timeout(240)
def test_one_server_for_all_tests_of_a_file_is_bent(tmp_path: Path) -> None:
    """Each test stands on what the ones before it did, and the first answer shows that it is up."""
    _project(
        tmp_path,
        SERVER,
        """
        import json
        import subprocess
        import sys
        import urllib.request

        import pytest


        @pytest.fixture(scope="module")
        def asked():
            argv = [sys.executable, "shop.py"]
            with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
                address = "http://127.0.0.1:" + server.stdout.readline().strip()

                def ask(path, method="GET"):
                    request = urllib.request.Request(address + path, method=method)
                    with urllib.request.urlopen(request, timeout=20) as answer:
                        return json.load(answer)

                assert ask("/") == {"well": True}
                yield ask
                server.terminate()


        def test_1_keeps(asked):
            assert asked("/red", "POST") == {"kept": "/red"}


        def test_2_keeps_more(asked):
            assert asked("/blue", "POST") == {"kept": "/blue"}


        def test_3_lists(asked):
            assert asked("/kept") == {"all": ["red", "blue"]}
        """,
    )
    tried = _tried(tmp_path)
    assert tried.came("listed()") == [Came.NOTICED], tried.run
    assert tried.mutation.is_proof
    # A server that does nothing lets its client wait: that comes behind what has a result.
    order = [tried.pieces[one.piece].name for one in tried.run.tried]
    assert order.index("listed()") < order.index("Handler.do_GET()")


def test_a_command_that_is_run_within_a_test_may_fall_over_unseen(tmp_path: Path) -> None:
    """The runner of click makes a code of what is raised: who asks for 0 has looked at nothing."""
    _project(
        tmp_path,
        """
        import click


        def place(words):
            return len(words) - 1


        def measure(text):
            return len(text)


        @click.command()
        @click.argument("words", nargs=-1)
        def main(words):
            click.echo(measure(words[place(words)]))
        """,
        """
        from click.testing import CliRunner

        import shop


        def test_ends_well():
            assert CliRunner().invoke(shop.main, ["a", "bcd"]).exit_code == 0


        def test_measures():
            assert CliRunner().invoke(shop.main, ["a", "bcd"]).output == "3\\n"
        """,
    )
    tried = _tried(tmp_path)
    watched = {one.name: one.test.partition("::")[2] for one in tried.mutation.watched}
    assert watched == {"measure()": "test_measures", "main()": "test_measures"}
    assert tried.came("place()") == [Came.BROKE]
