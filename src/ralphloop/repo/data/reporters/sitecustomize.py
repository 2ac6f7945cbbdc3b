"""Writes down how the tests of a `unittest` run ended, one JSON line each.

Python imports a module of this name when it starts; ours is found because a check of unittest runs
with this directory first on PYTHONPATH.  It only listens: results are noted and passed on.  What is
started by the tests does not see it, and a module of the same name that stood behind ours is
imported as it would have been.  Whatever Python the project has runs this, so it is written for
old ones too.
"""
# mypy: ignore-errors
# ruff: noqa: INP001, PTH100, PTH110, PTH118, PTH120, PTH123, SLF001

import json
import os
import sys

_OUT = "REPORT_TESTS_TO"
_ONLY = "REPORT_TESTS_OF"
_HERE = os.path.dirname(os.path.abspath(__file__))


def _listen(path, only):
    import unittest

    result = unittest.TestResult

    def write(line):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def listening(method, ended):
        told = getattr(result, method)

        def listener(self, test, *rest):
            said = rest[-1] if rest else None
            how = ended(test, said)
            if how is not None:
                is_error = isinstance(said, tuple)
                why = f"{said[0].__name__}: {said[1]}" if is_error else ""
                write([_name(test), how, why[:1000]])
            return told(self, test, *rest)

        setattr(result, method, listener)

    listening("addSuccess", lambda _test, _said: "passed")
    listening("addExpectedFailure", lambda _test, _said: "skipped")
    listening("addSkip", lambda _test, _said: "skipped")
    listening("addUnexpectedSuccess", lambda _test, _said: "failed")
    listening("addFailure", _how_it_failed)
    listening("addError", _how_it_failed)
    listening("addSubTest", lambda test, error: error and _how_it_failed(test, error))

    begun = result.startTestRun
    over = result.stopTestRun

    def started(self):
        _leave_no_trace()
        return begun(self)

    def stopped(self):
        write("end")
        return over(self)

    result.startTestRun = started
    result.stopTestRun = stopped
    if only is not None:
        _load_only(unittest.TestLoader, {os.path.realpath(name) for name in only})


def _name(test):
    """The file and the way to the test in it, where that can be told."""
    example = getattr(test, "_dt_test", None)
    if example is not None:  # of a docstring: its own file, not that of the module `doctest`
        return "::".join([os.path.relpath(example.filename or "."), example.name])
    module = sys.modules.get(type(test).__module__)
    file = getattr(module, "__file__", None)
    method = getattr(test, "_testMethodName", None)
    if not method:
        return str(test)  # a fixture of a class or a module
    if file is None or type(test).__module__.startswith("unittest"):
        inside = method.replace(".", os.sep) + ".py"  # a module that could not be imported
        places = (os.path.join(place, inside) for place in sys.path)
        return next((os.path.relpath(place) for place in places if os.path.exists(place)), method)
    return "::".join([os.path.relpath(file), type(test).__qualname__, method])


def _how_it_failed(test, error):
    """Inside the test itself, or before it came to that."""
    method = getattr(test, "_testMethodName", None)
    trace = error[2]
    inside = False
    while trace is not None and method:
        inside = inside or trace.tb_frame.f_code.co_name == method
        trace = trace.tb_next
    is_missing = isinstance(error[0], type) and issubclass(error[0], ImportError)
    return "failed" if inside and not is_missing else "errors"


def _load_only(loader, wanted):
    load = loader.loadTestsFromModule

    def from_module(self, module, *rest, **more):
        file = getattr(module, "__file__", None)
        if file is None or os.path.realpath(file) not in wanted:
            return self.suiteClass()
        return load(self, module, *rest, **more)

    loader.loadTestsFromModule = from_module
    loader._match_path = lambda _self, _path, full, _pattern: os.path.realpath(full) in wanted


def _leave_no_trace():
    """What the tests start is none of our business."""
    if os.environ.pop(_OUT, None) is not None:
        os.environ.pop(_ONLY, None)
        places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        os.environ["PYTHONPATH"] = os.pathsep.join(place for place in places if place != _HERE)
        if not os.environ["PYTHONPATH"]:
            del os.environ["PYTHONPATH"]


if os.environ.get(_OUT):
    _only = os.environ.get(_ONLY)
    _listen(os.environ[_OUT], json.loads(_only) if _only else None)

# Import the module that Python would have found without ours.
sys.path[:] = [place for place in sys.path if os.path.abspath(place) != _HERE]
_ours = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ImportError:
    sys.modules["sitecustomize"] = _ours
