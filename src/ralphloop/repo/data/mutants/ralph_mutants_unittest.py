"""Runs mutants within `python -m unittest`; `ralph_mutants` says how."""
# mypy: ignore-errors
# ruff: noqa: INP001

import os
import sys
import unittest

import ralph_mutants as mutants


class UnittestRunner:
    """Tests that unittest has loaded."""

    def __init__(self, suite, work):
        self.tests = {}
        self.work = work
        waiting = [suite]
        while waiting:
            one = waiting.pop()
            if isinstance(one, unittest.TestSuite):
                waiting.extend(reversed(list(one)))
            elif _file(one) is not None:
                self.tests[_name(one, work.root)] = one

    def names(self):
        only = self.work.job["only"]
        if only is None:
            return list(self.tests)
        return [name for name in self.tests if self.file_of(name) in only]

    def file_of(self, name):
        return name.partition("::")[0]

    def told(self, name):
        return name

    def argument(self, name):
        return name

    def run(self, names, telling):
        result = ListeningResult(telling)
        for name in names:
            test = self.tests.get(name)
            if test is None:
                continue
            result.name = name
            result.has_passed = False
            telling.started(name)
            telling.phase("call")
            unittest.TestSuite([test]).run(result)
            if result.has_passed and not telling.failed:
                telling.good(name)
            if telling.is_over:
                break


def _file(test):
    return getattr(sys.modules.get(type(test).__module__), "__file__", None)


def _name(test, root):
    method = getattr(test, "_testMethodName", "") or str(test)
    file = os.path.relpath(os.path.realpath(_file(test)), root)
    return f"{file}::{type(test).__qualname__}::{method}"


class ListeningResult(unittest.TestResult):
    """Listens to the tests of a fork."""

    def __init__(self, telling):
        super().__init__()
        self.telling = telling
        self.name = ""
        self.has_passed = False

    def addSuccess(self, test):  # noqa: N802
        self.has_passed = True

    def addFailure(self, test, err):  # noqa: N802
        self.telling.bad(self.name, err, inside=_is_inside(test, err))

    def addError(self, test, err):  # noqa: N802
        self.telling.bad(self.name, err, inside=_is_inside(test, err))

    def addSubTest(self, test, subtest, err):  # noqa: N802
        if err is not None:
            self.telling.bad(self.name, err, inside=True)


def _is_inside(test, error):
    """Within the test itself, not in what is set up for it."""
    method = getattr(test, "_testMethodName", None)
    trace = error[2]
    while trace is not None:
        if trace.tb_frame.f_code.co_name == method:
            return True
        trace = trace.tb_next
    return False


def listen():
    """Take the place of what runs the tests, once they are loaded."""
    work, asked = mutants.begun()

    def run(_self, suite):
        runner = UnittestRunner(suite, work)
        try:
            if asked is None:
                work.carry_out(runner)
            else:
                question, told = asked
                telling = mutants.Telling(work, told, stop=True, busy_s=question["busy_s"])
                runner.run(question["tests"], telling)
        finally:
            os._exit(0)

    unittest.TextTestRunner.run = run
