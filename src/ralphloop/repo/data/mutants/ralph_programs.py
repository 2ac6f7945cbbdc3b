"""What tests start: programs that load the texts of a mutant, and how they ended.

A test that starts a program sees the mutant only from outside.  So the program tells, line by
line into a file, which places it runs, whether it altered anything and whether it fell over an
error; the process of the tests notes with which code it ended.  A test that then fails may do so
because the program broke down: where it ended worse than with the story as it is, nothing was
looked at.
"""
# mypy: ignore-errors
# ruff: noqa: INP001, PTH118, PTH120, PTH123, SLF001

import json
import os
import subprocess
import sys

import ralph_bending as bending

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100
TEXTS = "RALPH_MUTANT_TEXTS"
PHASE = "RALPH_MUTANT_PHASE"


class Programs:
    """Programs that the tests of this process start."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.told = ""
        self.variables = {}
        self.at = 0  # lines of the file that were read
        self.codes = []
        self.falls = 0
        self.is_click_watched = False

    def tell(self, texts):
        """Have programs that are started from here on load these texts."""
        name = os.path.join(self.scratch, "texts-" + str(os.getpid()) + ".json")
        self.told = os.path.join(self.scratch, "told-" + str(os.getpid()))
        with open(name, "w", encoding="utf-8") as file:
            json.dump({"texts": texts, "told": self.told}, file)
        self.variables = {TEXTS: name, PHASE: "setup"}
        os.environ.update(self.variables)
        os.environ["PYTHONPATH"] = _with_us(os.environ.get("PYTHONPATH", ""))
        self._watch()

    def phase(self, phase):
        if self.told:
            os.environ[PHASE] = phase
            self.variables[PHASE] = phase

    def began(self):
        """A test begins: what is told from here on is about it."""
        self.codes = []
        self.falls = 0
        if self.told:
            self._watch_click()

    def lines(self):
        """What programs told since this was asked last."""
        if not self.told or not os.path.exists(self.told):  # noqa: PTH110
            return []
        with open(self.told, "rb") as file:
            file.seek(self.at)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        self.at += len(text)
        found = [json.loads(line.decode("utf-8")) for line in text.splitlines()]
        self.falls += sum(line[0] == "fell" for line in found)
        return found

    def ends(self):
        """How many fell over an error, and whether one ended with another code than 0."""
        return [self.falls, any(self.codes)]

    def _watch(self):
        programs = self
        popen = subprocess.Popen
        begin = popen.__init__
        handle = popen._handle_exitstatus
        wait = os.waitpid
        system = os.system

        def begun(self, *args, **kwargs):
            if kwargs.get("env") is not None:
                kwargs["env"] = programs._told_to(kwargs["env"])
            return begin(self, *args, **kwargs)

        def handled(self, *args, **kwargs):
            found = handle(self, *args, **kwargs)
            programs.codes.append(self.returncode)
            return found

        def waited(*args):
            found = wait(*args)
            if found[0]:
                programs.codes.append(found[1])
            return found

        def ran(command):
            found = system(command)
            programs.codes.append(found)
            return found

        popen.__init__ = begun
        popen._handle_exitstatus = handled
        os.waitpid = waited
        os.system = ran

    def _told_to(self, variables):
        """An environment that a test made itself, with what a program needs to load the texts."""
        if any(isinstance(name, bytes) for name in variables):
            return variables
        places = _with_us(variables.get("PYTHONPATH", ""))
        return dict(variables, PYTHONPATH=places, **self.variables)

    def _watch_click(self):
        """A program that is run within a test: what it raises becomes a code there."""
        testing = sys.modules.get("click.testing")
        if testing is None or self.is_click_watched:
            return
        self.is_click_watched = True
        programs = self
        begin = testing.Result.__init__

        def begun(self, *args, **kwargs):
            begin(self, *args, **kwargs)
            programs.codes.append(self.exit_code)
            error = self.exception
            programs.falls += error is not None and not isinstance(error, SystemExit)

        testing.Result.__init__ = begun


def _with_us(places):
    found = [place for place in places.split(os.pathsep) if place and place != HERE]
    return os.pathsep.join([HERE, *found])


def worse(now, before):
    """How programs ended worse than they did before: `fell`, `refused`, or not at all."""
    falls, is_bad = now
    fell_before, was_bad = before
    if falls > fell_before:
        return "fell"
    return "refused" if is_bad and not was_bad else ""


class ProgramTeller:
    """In a program that a test has started: tells what happens to it."""

    def __init__(self, path):
        self.path = path
        self.phase = os.environ.get(PHASE, "call")
        self.seen = set()
        self.soft = set()

    def ran(self, number):
        if number not in self.seen:
            self.seen.add(number)
            self._say(["ran", number, self.phase])

    def bent(self):
        """Called after every value that was altered; the first of each kind is told."""
        for words in sorted(bending.soft - self.soft):
            self.soft.add(words)
            self._say(["soft", words])
        if bending.count[0] == 1:
            self._say(["bent"])
        if bending.nothings[0] == 1:
            self._say(["void"])

    def listen(self):
        bending.listeners.append(self.bent)
        hook = sys.excepthook

        def fell(kind, *rest):
            # A name that is missing is no doing of the code.
            if not issubclass(kind, (NameError, ImportError, AttributeError)):
                self._say(["fell"])
            return hook(kind, *rest)

        sys.excepthook = fell

    def _say(self, line):
        try:
            with open(self.path, "ab", buffering=0) as file:
                file.write(json.dumps(line).encode("utf-8") + b"\n")
        except OSError:  # a program that may not write there, or whose directory is gone
            pass


class ScriptFinder:
    """Finds a script that Python was told to run by its path, with the text of a mutant."""

    def __init__(self, path, text):
        self.path = path
        self.text = text

    def find_spec(self, name, target=None):
        from importlib.machinery import ModuleSpec

        if name != "__main__":
            return None
        spec = ModuleSpec(name, self, origin=self.path)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def get_code(self, name):
        # Python has put the script itself there, as it does with an archive.
        sys.path[0] = os.path.dirname(os.path.realpath(self.path))
        return compile(self.text, self.path, "exec", dont_inherit=True)

    def exec_module(self, module):
        exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102


def find_scripts(texts):
    """Have scripts that are run by their path found with other texts."""

    def hook(path):
        text = texts.get(os.path.realpath(path)) if path else None
        if text is None:
            raise ImportError(path)
        return ScriptFinder(path, text)

    sys.path_hooks.insert(0, hook)
