"""Runs mutants within a session of pytest; `ralph_mutants` says how."""
# mypy: ignore-errors
# ruff: noqa: INP001, PTH118, SLF001

import os
import pathlib

import pytest
import ralph_mutants as mutants


class PytestRunner:
    """Items that pytest has collected."""

    def __init__(self, session):
        self.session = session
        self.items = {}
        for item in session.items:
            self.items.setdefault(_base(item.nodeid), []).append(item)

    def names(self):
        return list(self.items)

    def file_of(self, name):
        """From the root of the project, where that is what pytest takes for its root, too."""
        path = str(self.items[name][0].fspath)
        return os.path.relpath(path, WORK.root)

    def told(self, name):
        mark, rest = name.partition("::")[1:]
        return self.file_of(name) + mark + rest if name in self.items else name

    def argument(self, name):
        mark, rest = name.partition("::")[1:]
        return str(self.items[name][0].fspath) + mark + rest

    def run(self, names, telling):
        config = self.session.config
        _own_place(config)
        watch = ItemWatch(telling)
        config.pluginmanager.register(watch, "ralph-watch")
        for at, name in enumerate(names):
            items = self.items[name]
            watch.began(name)
            for number, item in enumerate(items):
                behind = [*items[number + 1 :], *self._beside(name, names[at + 1 : at + 2])]
                following = behind[0] if behind else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if telling.failed and telling.stop:
                    break
            watch.ended(name)
            if telling.is_over:
                break

    def _beside(self, name, others):
        """Items of others in the same file: what was set up for all of them stays."""
        found = [item for other in others for item in self.items[other]]
        return [item for item in found if item.fspath == self.items[name][0].fspath]


def _base(name):
    """A test without the row of its table."""
    at = name.find("[")
    return name[:at] if at > 0 and name.endswith("]") else name


def _own_place(config):
    """Temporary directories of a fork are its own, and go with ours."""
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None:
        factory._given_basetemp = pathlib.Path(WORK.job["scratch"], f"tmp-{os.getpid()}")
        factory._basetemp = None


class ItemWatch:
    """Listens to pytest within a fork."""

    def __init__(self, telling):
        self.telling = telling
        self.name = ""
        self.has_passed = False

    def began(self, name):
        self.name = name
        self.has_passed = False
        self.telling.started(name)

    def ended(self, name):
        if self.has_passed and not self.telling.failed:
            self.telling.good(name)

    def pytest_runtest_setup(self):
        self.telling.phase("setup")

    def pytest_runtest_call(self):
        self.telling.phase("call")

    def pytest_runtest_teardown(self):
        self.telling.phase("teardown")

    def pytest_runtest_makereport(self, item, call):
        error = call.excinfo
        if call.when == "call" and error is None:
            self.has_passed = True
        if error is None or "Skipped" in error.type.__name__:
            return
        if item.get_closest_marker("xfail"):
            return
        whole = (error.type, error.value, error.tb)
        self.telling.bad(self.name, whole, inside=call.when == "call")


class Asked:
    """Listens to pytest in a fork from before everything, which runs a session of its own."""

    def __init__(self, told, busy_s):
        self.telling = mutants.Telling(WORK, told, stop=True, busy_s=busy_s)
        self.watch = ItemWatch(self.telling)

    def pytest_runtest_logstart(self, nodeid):
        name = _base(nodeid)
        if name != self.watch.name:
            self._end()
            self.watch.began(name)

    def _end(self):
        if self.watch.name:
            self.watch.ended(self.watch.name)

    def pytest_runtest_call(self):
        self.telling.phase("call")

    def pytest_runtest_makereport(self, item, call):
        self.watch.pytest_runtest_makereport(item, call)

    def pytest_runtest_logfinish(self):
        if self.telling.is_over:
            os._exit(0)

    def pytest_sessionfinish(self):
        self._end()
        os._exit(0)


WORK, ASKED = mutants.begun()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """One process, every test, no traces: whatever else the settings of a project say."""
    option = config.option
    for name, value in (("dist", "no"), ("tx", []), ("numprocesses", None), ("maxfail", 0)):
        if hasattr(option, name):
            setattr(option, name, value)
    option.tbstyle = "native"  # nobody reads it, and the others take longer than many a test
    option.basetemp = os.path.join(WORK.job["scratch"], f"tmp-{os.getpid()}")
    if ASKED is not None:
        question, told = ASKED
        config.args = question["tests"]
        config.pluginmanager.register(Asked(told, question["busy_s"]), "ralph-asked")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if ASKED is not None:
        return
    try:
        WORK.carry_out(PytestRunner(session))
    finally:
        os._exit(0)  # nothing of what else happens at the end of a session is wanted
