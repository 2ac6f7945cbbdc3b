"""Runs tests against mutants of a story's change, within one start of their runner.

The files of the change are imported with probes in them, so that it is known which test runs what.
For that we are there before the runner imports anything of the project: pytest itself may do so,
for a filter of warnings or as a plugin.  Where a file was imported earlier still, nobody knows, and
that is said.  Then each mutant gets a fork of the process in which all tests are loaded and none
has run: the code of the functions that live there is exchanged, and the tests that reach it run
until one notices.
What makes a difference only while a file is loaded gets a fork from before anything of the project
was imported.  Nothing is written into the work tree.

Whatever Python the project has runs this, so it is written for old ones too.  The runners are
beside it: `ralph_mutants_pytest` is a plugin, `unittest` is carried by `sitecustomize`.
"""
# mypy: ignore-errors
# ruff: noqa: INP001, PTH100, PTH118, PTH120, PTH123, PTH206, S110, BLE001

import builtins
import gc
import json
import os
import select
import signal
import sys
import time
import types

import ralph_bending as bending
import ralph_programs as programs

JOB = "RALPH_MUTANTS_JOB"
TEXTS = programs.TEXTS
HERE = os.path.dirname(os.path.abspath(__file__))
_SPARE_BYTES = 2 << 30
_LONGEST_SAID = 300
_LEAST_S = 2.0
_LEAST_BUSY_S = 0.25  # a loop that never ends is known by what it computes, however busy others are
_MOST_BUSY_S = 1.0  # beyond what its tests took
_LONGEST_S = 24 * 3600.0
_LOADING_S = 10.0
_MOST_ROWS = 4000
_WELL = [0, False]  # no program fell, and none ended badly


class Loading:
    """Other texts for some files, wherever they are imported from."""

    def __init__(self):
        self.texts = {}
        self.loaded = set()

    def install(self):
        from importlib._bootstrap_external import SourceLoader

        load = SourceLoader.get_code
        loading = self

        def get_code(self, fullname):
            path = self.get_filename(fullname)
            text = loading.texts.get(os.path.realpath(path))
            if text is None:
                return load(self, fullname)
            loading.loaded.add(os.path.realpath(path))
            return compile(text, path, "exec", dont_inherit=True)

        SourceLoader.get_code = get_code
        once_loaded("_pytest.assertion.rewrite", self._leave_to_us)

    def _leave_to_us(self, rewrite):
        """Pytest rewrites the assertions of plugins, and would load them from their files."""
        hook = rewrite.AssertionRewritingHook
        find = hook.find_spec
        loading = self

        def find_spec(self, *args, **kwargs):
            spec = find(self, *args, **kwargs)
            is_ours = spec is not None and os.path.realpath(spec.origin or "") in loading.texts
            return None if is_ours else spec

        hook.find_spec = find_spec


def once_loaded(name, act):
    """Call `act` with a module as soon as it is loaded."""
    from importlib._bootstrap_external import SourceLoader

    if name in sys.modules:
        act(sys.modules[name])
        return
    load = SourceLoader.exec_module

    def exec_module(self, module):
        load(self, module)
        if module.__name__ == name:
            act(module)

    SourceLoader.exec_module = exec_module


def files_of_modules():
    """The files of all modules that are loaded."""
    found = set()
    for module in list(sys.modules.values()):
        try:
            found.add(os.path.realpath(vars(module)["__file__"]))
        except Exception:  # no module, or one without a file
            pass
    return found


def edited(source, edits):
    """The bytes of a file with spans replaced; columns count bytes."""
    starts = [0]
    for line in source.splitlines(True):
        starts.append(starts[-1] + len(line))
    if source.startswith(b"\xef\xbb\xbf"):
        starts[0] = 3
    for line, column, last_line, last_column, text in sorted(edits, reverse=True):
        first = starts[line - 1] + column
        last = starts[last_line - 1] + last_column
        source = source[:first] + text.encode("utf-8") + source[last:]
    return source


class Living:
    """Function objects of the changed files, by the code they have in the text of the file."""

    def __init__(self, paths):
        self.found = {}
        known = {}
        for one in gc.get_objects():
            if type(one) is not types.FunctionType:
                continue
            name = one.__code__.co_filename
            if name not in known:
                known[name] = os.path.realpath(name)
            if known[name] in paths:
                key = (known[name], one.__code__.co_name, one.__code__.co_firstlineno)
                self.found.setdefault(key, []).append(one)

    def exchange(self, path, source, mutated):
        """Give the functions of a file the code of another text; how many there are."""
        old = compile(source, path, "exec", dont_inherit=True)
        new = compile(mutated, path, "exec", dont_inherit=True)
        count = 0
        waiting = [(old, new)]
        while waiting:
            was, now = waiting.pop()
            inner = _inner(now)
            for key, code in _inner(was).items():
                if key in inner:
                    waiting.append((code, inner[key]))
            if was is old or (was.co_code == now.co_code and was.co_consts == now.co_consts):
                continue
            for function in self.found.get((path, was.co_name, was.co_firstlineno), ()):
                if function.__code__.co_freevars != now.co_freevars:
                    return 0
                function.__code__ = now
                count += 1
        return count


def _inner(code):
    """The code objects inside one, by name and number."""
    seen = {}
    found = {}
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            seen[one.co_name] = seen.get(one.co_name, 0) + 1
            found[one.co_name, seen[one.co_name]] = one
    return found


def _alone():
    """What a fork does first: say nothing, take no more memory than a bit, end with its group."""
    os.setpgid(0, 0)
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (size + _SPARE_BYTES, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except Exception:  # not every system can bound it
        pass


def _kill(pid):
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except OSError:
            pass
    try:
        os.waitpid(pid, 0)
    except OSError:
        pass


class PipeLines:
    """PipeLines of JSON out of a pipe."""

    def __init__(self, number):
        self.number = number
        self.rest = b""

    def until(self, deadline):
        """Every line that comes in time; the last is None where the time was over."""
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                yield json.loads(line.decode("utf-8"))
            left = deadline - time.monotonic()
            ready = (
                select.select([self.number], [], [], min(left, _LONGEST_S))[0] if left > 0 else []
            )
            if not ready:
                yield None
                return
            part = os.read(self.number, 1 << 16)
            if not part:
                return
            self.rest += part


def _say(number, line):
    text = json.dumps(line).encode("utf-8") + b"\n"
    while text:
        text = text[os.write(number, text) :]


class Early:
    """A process from before the project was imported; each question is answered by a fork of it."""

    def __init__(self):
        self.asked = os.pipe()
        self.told = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(self.asked[0])
            os.close(self.told[1])

    def serve(self):
        """In the process itself: returns in each fork, with the question and where to answer."""
        os.close(self.asked[1])
        os.close(self.told[0])
        os.setpgid(0, 0)
        # The pipe ends when the process that asks does, however that comes about.
        while True:
            line = next(PipeLines(self.asked[0]).until(float("inf")), None)
            if line is None:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                os.close(self.asked[0])
                _alone()
                return line, self.told[1]
            _say(self.told[1], ["pid", pid])
            os.waitpid(pid, 0)
            _say(self.told[1], ["over"])

    def ask(self, question, deadline):
        """What its fork tells, line by line; None at the end where the time was over."""
        _say(self.asked[1], question)
        lines = PipeLines(self.told[0])
        pid = 0
        is_over = False
        try:
            for line in lines.until(deadline):
                if line is not None and line[0] == "pid":
                    pid = line[1]
                elif line is not None and line[0] == "over":
                    is_over = True
                    return
                else:
                    yield line
        finally:
            # Who asks next must not hear the rest of this answer.
            if pid and not is_over:
                _kill_group(pid)
            if not is_over:
                rest = lines.until(time.monotonic() + _LOADING_S)
                while next(rest, ["over"]) not in (["over"], None):
                    pass

    def end(self):
        os.close(self.asked[1])
        _kill(self.pid)


def _kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def kind_of(error, root):
    """`asserted` where the test itself found it wrong, `missing` a name, `fell` anything else."""
    value = error[1]
    names = {one.__name__ for one in type(value).__mro__}
    if names & {"ExceptionGroup", "BaseExceptionGroup"}:
        kinds = [kind_of((type(one), one, one.__traceback__), root) for one in value.exceptions]
        return "asserted" if "asserted" in kinds else kinds[0]
    if names & {"DocTestFailure", "MultipleDoctestFailures"}:
        return "asserted"
    if "Failed" in names and hasattr(value, "pytrace"):
        return "fell" if "Timeout" in str(value) else "asserted"
    if "AssertionError" in names:
        trace = error[2]
        last = ""
        while trace is not None:
            last = trace.tb_frame.f_code.co_filename
            trace = trace.tb_next
        return "fell" if _is_product(last, root) else "asserted"
    text = str(value)
    is_of_none = "'NoneType'" in text
    is_missing = names & {"NameError", "ImportError"} or "AttributeError" in names
    is_argument = "TypeError" in names and "argument" in text
    return "missing" if (is_missing and not is_of_none) or is_argument else "fell"


def _is_product(path, root):
    """A file of the project that is none of its tests'."""
    path = os.path.realpath(path)
    if not path.startswith(root + os.sep) or "site-packages" in path:
        return False
    *places, name = path[len(root) + 1 :].lower().split(os.sep)
    is_test = name.startswith(("test_", "conftest")) or "_test." in name
    return not is_test and not {"test", "tests", "testing"} & set(places)


def said_of(error):
    text = str(error[1]).strip().splitlines()
    return (type(error[1]).__name__ + ": " + (text[0] if text else ""))[:_LONGEST_SAID]


class MutantWork:
    """Everything that is to be found out; `runner` knows the tests and runs them."""

    def __init__(self, job):
        self.job = job
        self.root = os.path.realpath(job["root"])
        self.until = time.monotonic() + job["seconds"]
        self.sources = {}
        self.probes = []
        self.seen = {}
        self.current = ["", "load"]
        self.loading = Loading()
        self.unwatched = {}  # why nobody knows what tests run of a file
        self.programs = programs.Programs(job["scratch"])
        self.ends = {}
        self.early = None
        for path in {piece["path"] for piece in job["pieces"]}:
            full = os.path.realpath(os.path.join(self.root, path))
            with open(full, "rb") as file:
                self.sources[full] = file.read()

    def path_of(self, piece):
        return os.path.realpath(os.path.join(self.root, piece["path"]))

    # Before anything is imported

    def begin(self):
        """Returns the question where this is a fork that has one to answer, else None."""
        provide(self.ran)
        early = files_of_modules().intersection(self.sources)
        self.unwatched = dict.fromkeys(early, "its file was imported before the tests")
        self.loading.install()
        self.early = Early()
        if self.early.pid == 0:
            question, told = self.early.serve()
            texts = {path: text.encode("utf-8") for path, text in question["texts"].items()}
            self.loading.texts = texts
            self.ends = question["ends"]
            bending.always[0] = question["always"]
            self.until = time.monotonic() + question["seconds"]
            return question, told
        for path, source in self.sources.items():
            self.loading.texts[path] = self._probed(path, source)
        return None

    def _probed(self, path, source):
        edits = []
        for number, piece in enumerate(self.job["pieces"]):
            if self.path_of(piece) != path:
                continue
            for probe in piece["probes"]:
                self.probes.append((number, probe["line"]))
                word = str(len(self.probes) - 1)
                edits += [(*edit[:4], edit[4].replace("{number}", word)) for edit in probe["edits"]]
        probed = edited(source, edits)
        try:
            compile(probed, path, "exec", dont_inherit=True)
        except SyntaxError:  # of another Python than ours
            return source
        return probed

    def ran(self, number):
        self.seen.setdefault(number, set()).add((self.current[0], self.current[1]))

    # Once all tests are loaded

    def carry_out(self, runner):
        """Find everything out, and write it down line by line."""
        self.out = open(self.job["out"], "a", encoding="utf-8")  # noqa: SIM115
        try:
            self._carry_out(runner)
            self._write(["end"])
        finally:
            self.early.end()
            self.out.close()

    def _write(self, line):
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()

    def _carry_out(self, runner):
        self.living = Living(set(self.sources))
        self.runner = runner
        self._plain(runner)
        if not self.took:
            self._write(["trouble", "no test passed"])
            return
        tries = []
        for number, piece in enumerate(self.job["pieces"]):
            for index, mutant in enumerate(piece["mutants"]):
                tries.append((mutant["is_detail"], number, index))
        self.noticed = set()
        self.looked_at = set()  # pieces whose results were seen
        self.void = set()
        tries.sort(key=self._order)
        later = []
        self._try_all([one for one in tries if not one[0]], later)
        self.until = min(self.until, time.monotonic() + self.job["details_s"])
        self._try_all([*later, *(one for one in tries if one[0])])

    def _try_all(self, tries, later=None):
        """One after the other; `later` takes what decides nothing any more once one is noticed."""
        for one in tries:
            number, index = one[1:]
            if not self._is_wanted(number, index):
                continue
            is_added = self.job["pieces"][number]["is_added"]
            if later is not None and self.noticed and not is_added:
                later.append(one)
                continue
            if self.until <= time.monotonic():
                ended = Ended("untried", why="no time was left")
            else:
                ended = self._tried(number, index)
            test = self.runner.told(ended.test) if ended.test else ""
            self._write(["came", number, index, ended.how, test, ended.said, ended.why])
            if ended.soft:
                self._write(["soft", sorted(ended.soft)])
            if ended.how == "noticed":
                self.noticed.add(number)
                self._ask_for_both(number, index, ended)
            elif ended.how == "void":
                self.void.add(number)

    def _ask_for_both(self, number, index, noticed):
        """Of what says yes or no, and what tests ask by its name: do they ask for both?"""
        piece = self.job["pieces"][number]
        if not (noticed.is_truth and piece["is_asked"]) or piece["mutants"][index]["is_detail"]:
            return
        for answer in (True, False):
            ended = self._tried(number, index, always=answer)
            if ended.how == "survived":
                self._write(["always", number, answer])

    def _is_wanted(self, number, index):
        """One that is noticed is enough; doing nothing is one only where there is no result."""
        piece = self.job["pieces"][number]
        mutant = piece["mutants"][index]
        if mutant["is_detail"]:
            return True
        if number in self.noticed and self.job["compares"] and mutant["is_valued"]:
            return number not in self.looked_at
        is_moot = mutant["operator"] == "empty" and piece["returns"] and number not in self.void
        return number not in self.noticed and not is_moot

    def _order(self, one):
        is_detail, number, index = one
        piece = self.job["pieces"][number]
        tests = self.tests_of.get(number, ())
        cost = sum(self.took.get(test, 0.0) for test in tests)
        is_loaded = piece["mutants"][index]["when_loaded"] or not tests
        # What may prove comes first, what needs a start of its own behind it, lines at the end.
        # A server that does nothing lets its clients wait: what has a result comes before that.
        is_void = not any(mutant["is_valued"] for mutant in piece["mutants"])
        return is_detail, is_loaded, cost, is_void, number, index

    def _plain(self, runner):
        """Which tests pass with everything as it is, how long each takes, and what each runs."""
        self.took = {}
        self.tests_of = {}
        self.outside = set()
        self.at_load = {self.probes[number][0] for number in self.seen}
        seen = []
        for line in self._forked(runner, runner.names(), self.until, probing=True):
            if line is None:
                break
            if line[0] == "passed":
                self.took[line[1]] = line[2]
                self.ends[line[1]] = line[3]
            elif line[0] == "seen":
                seen += line[1]
            elif line[0] == "unwatched":
                for path in line[1]:
                    self.unwatched.setdefault(path, "its file is imported in a way of its own")
        self._write(["tests", [runner.told(name) for name in self.took]])
        self._weigh(runner, seen)

    def _weigh(self, runner, seen):
        """Which tests are to be run for which piece, and which ran which line."""
        numbers = {name: number for number, name in enumerate(self.took)}
        homes = {}
        for name in self.took:
            homes.setdefault(runner.file_of(name), []).append(name)
        places = {}
        for number, test, phase in seen:
            if test not in numbers:
                continue
            piece, line = self.probes[number]
            place = self.job["pieces"][piece]["path"] + ":" + str(line)
            # What is set up for one test may be set up for all of its file.
            tests = [test] if phase.startswith("call") else homes[runner.file_of(test)]
            here = tests if phase == "setup outside" else [test]
            places.setdefault(place, set()).update(numbers[name] for name in here)
            if phase.endswith("outside"):
                self.outside.add(piece)
            self.tests_of.setdefault(piece, {}).update(dict.fromkeys(tests))
        for piece, tests in self.tests_of.items():
            self._write(["reach", piece, [numbers[test] for test in tests]])
        for place, tests in places.items():
            self._write(["line", place, sorted(tests)[:_MOST_ROWS]])

    def _tried(self, number, index, always=None):
        """How one mutant ended; noticed only if it is noticed twice, by a test that is steady.

        With `always`, truth values are that, and nothing else is different.
        """
        piece = self.job["pieces"][number]
        mutant = piece["mutants"][index]
        if mutant["is_valued"]:
            self.looked_at.add(number)
        path = self.path_of(piece)
        if path in self.unwatched:
            return Ended("untried", why=self.unwatched[path])
        text = edited(self.sources[path], mutant["edits"])
        try:
            compile(text, path, "exec", dont_inherit=True)
        except SyntaxError:  # of another Python than ours
            return Ended("untried", why="it cannot be altered")
        reaching = list(self.tests_of.get(number, ()))
        is_unseen = piece["is_function"] and not reaching and number not in self.at_load
        if is_unseen and mutant["is_detail"]:
            return Ended("untried", why="no test runs it")
        is_loaded = mutant["when_loaded"] or number in self.at_load or not reaching
        is_shared = number in self.outside
        tests = self._in_order(self._beside() if is_loaded else reaching, is_shared)
        ways = [self._as_loaded] if is_loaded else [self._exchanged, self._as_loaded]
        for way in ways:
            ended = judged(way(tests, path, text, number, always), mutant)
            if ended.how == "unchanged":
                continue
            if is_unseen and ended.how in ("survived", "untried"):
                return Ended("untried", why="no test runs it")
            is_proof = ended.how == "noticed" and not mutant["is_detail"] and always is None
            if is_proof and not self._is_steady(
                self._alone(ended.test, tests, is_shared),
                lambda again, way=way: judged(way(again, path, text, number), mutant),
            ):
                return Ended("untried", why="its tests do not do the same twice")
            return ended
        return Ended("untried", why="it cannot be exchanged")

    def _alone(self, test, tests, is_shared):
        """What to run for this test: those before it too, where it stands on what they did."""
        if is_shared and not self._pass([test]):
            return tests[: tests.index(test) + 1]
        return [test]

    def _is_steady(self, tests, run_mutant):
        """Whether the mutant is noticed a second time, and the tests still pass without it."""
        return run_mutant(tests).how == "noticed" and self._pass(tests)

    def _beside(self):
        """The tests of the story's own files, or all where there are none."""
        first = set(self.job["first"])
        return [name for name in self.took if self.runner.file_of(name) in first] or list(self.took)

    def _in_order(self, tests, is_shared):
        """The quickest first; tests that share a program stand on what the ones before did."""
        first = set(self.job["first"])
        place = {name: at for at, name in enumerate(self.took)}
        last = place if is_shared else self.took
        return sorted(tests, key=lambda it: (self.runner.file_of(it) not in first, last[it]))

    def _seconds(self, tests):
        took = sum(self.took[test] for test in tests)
        return max(0.0, min(3 * took + _LEAST_S, self.until - time.monotonic()))

    def _pass(self, tests):
        """Whether the last of these tests passes with everything as it is."""
        lines = self._forked(self.runner, tests, time.monotonic() + self._seconds(tests))
        return ["passed", tests[-1]] in [line[:2] for line in lines if line]

    def _busy_seconds(self, tests):
        """How long these tests may compute themselves, without what they wait for."""
        # What is loaded late some test has loaded when all of them ran.
        late = 2 * max(self.took.values())
        return 3 * sum(self.took[test] for test in tests) + min(
            max(late, _LEAST_BUSY_S), _MOST_BUSY_S
        )

    def _exchanged(self, tests, path, text, number, always=None):
        """The code of living functions exchanged, here and in programs that are started."""

        def exchange():
            bending.always[0] = always
            self.programs.tell({path: text.decode("utf-8")})
            living = self.living.exchange(path, self.sources[path], text)
            return living or number in self.outside

        deadline = time.monotonic() + self._seconds(tests)
        return self._forked(self.runner, tests, deadline, before=exchange)

    def _as_loaded(self, tests, path, text, _number, always=None):
        """The file loaded with this text, by a process that has loaded nothing yet."""
        seconds = self._seconds(tests) + _LOADING_S
        question = {
            "texts": {path: text.decode("utf-8")},
            "tests": [self.runner.argument(test) for test in tests],
            "ends": {test: self.ends[test] for test in tests},
            "seconds": seconds,
            "busy_s": self._busy_seconds(tests),
            "always": always,
        }
        return self.early.ask(question, time.monotonic() + seconds)

    def _forked(self, runner, tests, deadline, before=None, probing=False):
        """What a fork of this process tells about these tests."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(reading)
                _alone()
                status = self._in_fork(runner, tests, writing, before, probing)
            finally:
                os._exit(status)
        os.close(writing)
        try:
            yield from PipeLines(reading).until(deadline)
        finally:
            os.close(reading)
            _kill(pid)

    def _in_fork(self, runner, tests, writing, before, probing):
        if not probing:
            builtins.__ralph_ran__ = _nothing
        elif self.loading.texts:
            texts = self.loading.texts.items()
            self.programs.tell({path: text.decode("utf-8") for path, text in texts})
        if before is not None and not before():
            _say(writing, ["unchanged"])
            return 0
        self.seen = {}
        bending.count[0] = 0
        bending.nothings[0] = 0
        bending.truths[0] = 0
        bending.soft.clear()
        busy_s = 0.0 if probing else self._busy_seconds(tests)
        runner.run(tests, Telling(self, writing, stop=not probing, busy_s=busy_s))
        if probing:
            rows = [(number, *at) for number, found in self.seen.items() for at in sorted(found)]
            for at in range(0, len(rows), _MOST_ROWS):
                _say(writing, ["seen", rows[at : at + _MOST_ROWS]])
            loaded = files_of_modules().intersection(self.sources)
            _say(writing, ["unwatched", sorted(loaded - self.loading.loaded)])
        return 0


class Ended:
    """How a mutant ended, by which test."""

    def __init__(self, how, test="", said="", why=""):
        self.how = how
        self.test = test
        self.said = said
        self.why = why
        self.is_truth = False  # what was altered was true or false
        self.soft = set()


def judged(lines, mutant):
    """How a mutant ended, by what its process told."""
    found = MutantAnswer(mutant)
    ended = None
    for line in lines:
        ended = found.late() if line is None else found.heard(line[0], line[1:])
        if ended is not None:
            break
    ended = ended or found.over()
    ended.is_truth = found.is_truth
    ended.soft = found.soft
    return ended


class MutantAnswer:
    """What a process tells of one mutant, put together."""

    def __init__(self, mutant):
        self.mutant = mutant
        self.running = ""
        self.fell = None
        self.passed = 0
        self.has_bent = False
        self.is_void = False
        self.is_truth = False
        self.soft = set()

    def heard(self, what, rest):
        if what == "unchanged":
            return Ended("unchanged")
        if what == "started":
            self.running = rest[0]
        elif what == "passed":
            self.passed += 1
            self.running = ""
        elif what == "bent":
            self.has_bent = True
            self.is_truth = rest[0]
        elif what == "void":
            self.is_void = True
        elif what == "soft":
            self.soft.add(rest[0])
        elif what == "failed":
            self.running = ""
            name, kind, said = rest
            is_undone = self.mutant["operator"] == "undo"
            if kind == "asserted" or (is_undone and kind == "fell"):
                return Ended("noticed", name, said)
            self.fell = self.fell or Ended("broke", name, said)
        return None

    def late(self):
        """The time was over; a test that was running then has fallen over it."""
        if self.running:
            return self.fell or Ended("broke", self.running, "it ran out of time")
        return self.fell or Ended("untried", why="no time was left")

    def over(self):
        if self.running:
            return self.fell or Ended(
                "broke", self.running, "it ended the process, or never would have"
            )
        if self.fell:
            return self.fell
        if not self.passed:
            return Ended("untried", why="no test could be run with it")
        if self.mutant["is_valued"] and not self.has_bent:
            if self.is_void:
                return Ended("void")
            return Ended("untried", why="its result cannot be altered")
        return Ended("survived")


def _nothing(_number):
    return None


class Telling:
    """What a fork says of the tests it runs."""

    def __init__(self, work, number, stop, busy_s):
        self.work = work
        self.number = number
        self.stop = stop  # at the first test that notices
        self.busy_s = busy_s  # for all tests together; 0: as long as they want
        self.is_over = False
        self.has_bent = False
        self.is_void = False
        self.soft = set()
        self.began = 0.0
        self.failed = False

    def started(self, name):
        if self.busy_s and not self.began:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, self.busy_s)
        self.began = time.monotonic()
        self.failed = False
        self.work.current[:] = [name, "setup"]
        self.work.programs.began()
        self.phase("setup")
        _say(self.number, ["started", name])

    def phase(self, phase):
        self.work.current[1] = phase
        self.work.programs.phase(phase)

    def bad(self, name, error, *, inside):
        if self.failed:
            return
        self.failed = True
        self.bent()
        kind = kind_of(error, self.work.root) if inside else "setup"
        before = self.work.ends.get(name, _WELL)
        if kind in ("asserted", "fell"):
            kind = programs.worse(self.work.programs.ends(), before) or kind
        _say(self.number, ["failed", name, kind, said_of(error)])
        # A test that fell over it may stand before one that looks.
        self.is_over = self.stop and kind == "asserted"

    def good(self, name):
        self.bent()
        ends = self.work.programs.ends()
        _say(self.number, ["passed", name, time.monotonic() - self.began, ends])

    def bent(self):
        self._hear()
        for words in sorted(bending.soft - self.soft):
            self.soft.add(words)
            _say(self.number, ["soft", words])
        if bending.count[0] and not self.has_bent:
            self.has_bent = True
            _say(self.number, ["bent", bending.truths[0] == bending.count[0]])
        if bending.nothings[0] and not self.is_void:
            self.is_void = True
            _say(self.number, ["void"])

    def _hear(self):
        """What programs told that the test has started."""
        for what, *rest in self.work.programs.lines():
            if what == "ran":
                number, phase = rest
                at = (self.work.current[0], phase + " outside")
                self.work.seen.setdefault(number, set()).add(at)
            elif what == "bent":
                bending.count[0] += 1
            elif what == "soft":
                bending.soft.add(rest[0])
            elif what == "void":
                bending.nothings[0] += 1


_BEGUN = []  # the work of this process, and the question of a fork that has one


def await_pytest():
    """Begin before pytest imports anything of a project, which it does for more than tests."""
    once_loaded("pytest", lambda _module: _begin())


def begun():
    """The work, begun here unless it was before, and the question of a fork that has one."""
    _begin()
    _leave_no_trace()
    work, asked = _BEGUN[0]
    if asked is not None:
        work.programs.tell(asked[0]["texts"])
    return work, asked


def _begin():
    if not _BEGUN:
        with open(os.environ[JOB], encoding="utf-8") as file:
            work = MutantWork(json.load(file))
        _BEGUN.append((work, work.begin()))


def _leave_no_trace():
    """What the tests start is none of our business."""
    os.environ.pop(JOB, None)
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(place for place in places if place != HERE)
    if not os.environ["PYTHONPATH"]:
        del os.environ["PYTHONPATH"]
    words = os.environ.get("PYTEST_ADDOPTS", "").replace("-p ralph_mutants_pytest", "").strip()
    os.environ["PYTEST_ADDOPTS"] = words
    if not words:
        del os.environ["PYTEST_ADDOPTS"]


def join_in():
    """In a process that a test has started: import the texts of its mutant."""
    with open(os.environ[TEXTS], encoding="utf-8") as file:
        told = json.load(file)
    teller = programs.ProgramTeller(told["told"])
    teller.listen()
    provide(teller.ran)
    loading = Loading()
    loading.texts = {path: text.encode("utf-8") for path, text in told["texts"].items()}
    loading.install()
    programs.find_scripts(loading.texts)


def provide(ran):
    """The names that are used in mutants and probes."""
    builtins.__ralph_bend__ = bending.bend
    builtins.__ralph_each__ = bending.each
    builtins.__ralph_off__ = False
    builtins.__ralph_ran__ = ran
