"""One command of a story on trial: the change as this command sees it, and the time there is.

Whoever tries a command takes from here the two sides of the change as they were, and has the
command run, as a whole or for some of its tests.
"""

import secrets
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

import msgspec

from ralphloop.core.model import CheckResult
from ralphloop.core.own_work import PathChange, PathEntry
from ralphloop.core.proof import TestReport, is_test_path
from ralphloop.core.sides import Side
from ralphloop.loop.exchanging import Impossible, OldSide, Stopped, StoryOnTrial
from ralphloop.loop.whose import at_first_start, helpers_of_tests, judge_of, place_changes, text_in
from ralphloop.loop.workspace import CLEANED_UP
from ralphloop.proc.slowness import slowness
from ralphloop.proc.threads import in_thread
from ralphloop.proof.answers import literals_of
from ralphloop.proof.trees import NoGrammar, hollowed
from ralphloop.repo.checks import Check, check_of, run_checks, run_once, verify_of
from ralphloop.repo.experiment import Sides, obstacle, split, with_renamed_tests
from ralphloop.repo.judges import Judge, is_data, is_setting
from ralphloop.repo.named import file_of
from ralphloop.repo.runners import FoundRunner, find_runner, is_shared_setting, known_runners
from ralphloop.repo.snapshot import Change
from ralphloop.text.additions import only_adds
from ralphloop.text.definitions import added_names, words_of
from ralphloop.text.renames import (
    RenamedFile,
    renamed_files,
    renamed_names,
    with_new_modules,
    with_new_names,
)
from ralphloop.text.stubs import with_stubs, words_of_stub

_SHARE_OF_FILES = 0.7  # of the check's own time, where changed files can be run alone
_SHARE_OF_ALL = 2.2  # where all tests have to run
_MOST_TEXTS = 60  # of tests that are read to know what they ask for
_LEAST_S = 60.0  # starting a runner takes its time, however short the check is
_TIMES_ALONE = 3.0  # the check's own time, for one run of its tests: what takes longer hangs
_LEAST_ALONE_S = 10.0


class Bench:
    def __init__(
        self,
        story: StoryOnTrial,
        argv: Sequence[str],
        now: CheckResult,
        before: TestReport | None = None,
    ) -> None:
        self.story = story
        self.argv = argv
        self.now = now  # what it shows with everything as the story left it
        self.found = find_runner(argv, story.place.root)
        self.judge = judge_of(story.place.measure, story.start.tree, story.prefix, argv)
        self.sides = _sides(story, self.judge, self.found, _tested(story, before, now.report))
        self.took_s = 0.0  # by the last run
        self._tag = f"_{secrets.token_hex(12)}"  # of stubs: no test can know it
        self._until = 0.0
        self._longest_s = now.duration_s  # that one run of its tests may take

    @property
    def can_be_told(self) -> bool:
        """Whether its runner takes some files, and nothing else is run then."""
        found = self.found
        return found is not None and found.callable and bool(found.runner.only)

    @cached_property
    def expected_files(self) -> frozenset[str]:
        """Files behind the command that say what is expected, and that no product named."""
        story = self.story
        data = [path for path in self.judge.files if is_data(path)]
        changes = [Change(path=f"{story.prefix}{it}", before=it, after=it) for it in data]
        tree = story.start.tree
        sides = place_changes(story.place.measure, tree, story.prefix, self.judge, changes)
        theirs = {path for path, side in sides.items() if side is Side.PERSON}
        return frozenset(path for path in data if f"{story.prefix}{path}" in theirs)

    @cached_property
    def asking_texts(self) -> tuple[bytes, ...]:
        """What the tests that it runs ask for: Python as it stands, of the rest the literals."""
        found = [literals_of(shlex.join(self.argv))]
        for path, text in self._asking_files.items():
            found.append(text.encode() if path.endswith(".py") else literals_of(text))
        return tuple(found)

    @cached_property
    def test_texts(self) -> tuple[bytes, ...]:
        """The tests that it runs, and the sources that hold tests too, as they are now."""
        return tuple(text.encode() for text in self._asking_files.values())

    @cached_property
    def _asking_files(self) -> dict[str, str]:
        """The texts of the tests that it runs, and of what is behind it, as they are now."""
        story = self.story
        report = self.now.report
        named = [file_of(name) for name in report.passed] if report else []
        if report and not any(named):  # Go and Java name packages and classes
            named = self.judge.tests
        paths = dict.fromkeys(
            (*self.sides.files(old=False), *self.judge.files, *filter(None, named))
        )
        measure = story.place.measure
        return {
            path: text_in(measure, story.end.tree, story.prefix, path)
            for path in list(paths)[:_MOST_TEXTS]
        }

    @property
    def left_s(self) -> float:
        return self._until - time.monotonic()

    # The sides of the change

    def old_tests(self) -> OldSide:
        """The tests as they were: whole files, and the docstrings of those that hold code too.

        Where the story renamed code, they call it by its new name: else they could not be loaded.
        """
        texts = {one.path: one.old_tests for one in self.sides.mixed}
        texts |= self._renaming_tests()
        whole = [change for change in self.sides.tests if change.path not in texts]
        return self.with_texts(whole, texts)

    def renamed_code(self) -> dict[str, str]:
        """The code files that came with the story and are older ones under another name: whose."""
        contents = self.story.place.measure.sides(self.sides.code)
        return {one.came: one.gone for one in _renamed(self.sides.code, contents)}

    def as_named_now(self, before: CheckResult) -> CheckResult:
        """What was known before the story, with tests by the names of the files they moved to."""
        report = before.report
        prefix = self.story.prefix
        files = [
            RenamedFile(gone.removeprefix(prefix), came.removeprefix(prefix))
            for came, gone in self.renamed_code().items()
            if came.endswith(".rs")
        ]
        if report is None or not files:
            return before
        named = {
            kind: {with_new_modules(name, files): it for name, it in getattr(report, kind).items()}
            for kind in TestReport.__struct_fields__
        }
        return msgspec.structs.replace(before, report=TestReport(**named))

    def _renaming_tests(self) -> dict[str, bytes]:
        """The old texts of tests that speak of code which has another name now, with that name."""
        files = [RenamedFile(gone, came) for came, gone in self.renamed_code().items()]
        came = self.story.place.measure.sides(self.sides.code)
        texts = {it.path: _as_text(came.get(it.after or "")) for it in self.sides.code}
        renamed = renamed_names(files, texts)
        if not renamed:
            return {}
        contents = self.story.place.measure.sides(self.sides.tests)
        found = {}
        for change in self.sides.tests:
            text = _as_text(contents.get(change.before or ""))
            told = with_new_names(text, renamed)
            if told != text:
                found[change.path] = told.encode("utf-8", "surrogateescape")
        return found

    def first_tests(self) -> OldSide | None:
        """The tests as they were when the run first started, where other stories changed them.

        None where nobody did.  What a story added stays, but for what a runner obeys unasked.
        """
        story = self.story
        measure = story.place.measure

        def is_wanted(path: str, change: PathChange) -> bool:
            is_old_test = change.before is not None and is_test_path(path)
            return is_old_test or self._is_obeyed(path, change)

        first = at_first_start(story.run, measure, story.start.tree, is_wanted)
        first = {path: entry for path, entry in first.items() if not self._only_grew(path, entry)}
        if not first:
            return None
        return self._as_at_first(first, {change.path for change in self.sides.held_back})

    def _only_grew(self, path: str, first: PathEntry | None) -> bool:
        """Whether a file of tests still says all that it said when the run first started.

        One more line of settings may leave out any test, so they never do.
        """
        is_code = path.endswith(".py")  # a conftest.py is read by what it does
        if not is_code and (is_setting(path) or is_shared_setting(path)):
            return False
        measure = self.story.place.measure
        known = measure.contents([first.content] if first else [])
        if first is not None and first.content not in known:
            return False
        text = _as_text(known[first.content]) if first else ""
        inside = path.removeprefix(self.story.prefix)
        now = text_in(measure, self.story.start.tree, self.story.prefix, inside)
        return bool(now) and only_adds(path, text, now)

    def _as_at_first(
        self, first: Mapping[str, PathEntry | None], held: AbstractSet[str]
    ) -> OldSide:
        """These paths as they were when the run first started, the held ones as the story found
        them; examples in docstrings go along."""
        story = self.story
        measure = story.place.measure
        tree = measure.with_entries(story.start.tree, first) if first else story.start.tree
        texts = {one.path: one.old_tests for one in self.sides.mixed}
        if texts:
            tree = measure.with_texts(tree, texts)
        wanted = held | first.keys() | texts.keys()
        changes = [it for it in measure.changes(tree, story.end.tree) if it.path in wanted]
        return OldSide(changes=tuple(changes), tree=tree)

    def old_judges(self, more: Sequence[Change] = ()) -> OldSide:
        """Every file that judges and was there, as it was when the run first started.

        Tests that came with the story stay; `more` are further changes to be taken back.
        """
        story = self.story
        measure = story.place.measure
        held = {change.path for change in (*self.sides.held_back, *more)}
        taken_in = {f"{story.prefix}{path}" for path in self.judge.taken_in}
        held |= {change.path for change in self.sides.tests if change.path in taken_in}
        behind = {f"{story.prefix}{path}" for path in self.judge.files}

        def is_wanted(path: str, change: PathChange) -> bool:
            is_known = path in held or path in behind or self._is_obeyed(path, change)
            return is_known or self._stands_in(path, change)

        first = at_first_start(story.run, measure, story.start.tree, is_wanted)
        first = {
            path: entry
            for path, entry in first.items()
            if entry is None or self._is_a_persons(path)
        }
        return self._as_at_first(first, held)

    def _is_obeyed(self, path: str, change: PathChange) -> bool:
        """Whether some runner obeys what others changed before this story, unasked."""
        if is_setting(path):
            return True
        names = [side.content for side in (change.before, change.after) if side is not None]
        if not is_shared_setting(path):
            return False
        contents = self.story.place.measure.contents(names)
        old = contents.get(change.before.content) if change.before else None
        new = contents.get(change.after.content) if change.after else None
        runners = known_runners()
        return any(it.own_settings(path, old) != it.own_settings(path, new) for it in runners)

    def _stands_in(self, path: str, change: PathChange) -> bool:
        """Whether what others added since judges now, though it is no test."""
        if change.before is not None or is_test_path(path):
            return False
        return self._side_of(Change(path=path, before=None, after=path)) is Side.AGENT

    def _is_a_persons(self, path: str) -> bool:
        """Whether a file that others changed before this story is a person's word."""
        if is_shared_setting(path):
            return True
        return self._side_of(Change(path=path, before=path, after=path)) is Side.PERSON

    def _side_of(self, change: Change) -> Side:
        """Whose word a path is by what stood when the story began."""
        story = self.story
        measure = story.place.measure
        sides = place_changes(measure, story.start.tree, story.prefix, self.judge, [change])
        return sides[change.path]

    def old_code(self) -> OldSide:
        texts = {one.path: one.old_code for one in self.sides.mixed}
        whole = [change for change in self.sides.code if change.path not in texts]
        return self.with_texts(whole, texts)

    def stubbed_code(self) -> OldSide:
        """The code as it was, with stubs for what came with the story, where they can be made.

        So a test cannot fail there merely because a name is missing.
        """
        texts = {one.path: one.old_code for one in self.sides.mixed}
        contents = self.story.place.measure.sides(self.sides.code)
        for change in self.sides.code:
            new = contents.get(change.after or "")
            old = contents.get(change.before or "")
            is_unread = new is None or (change.before is not None and old is None)
            if is_unread or not change.path.endswith(".py"):
                continue
            text = with_stubs(texts.get(change.path, old), new or b"", self._tag)
            if text is not None:
                texts[change.path] = text
        whole = [change for change in self.sides.code if change.path not in texts]
        return self.with_texts(whole, texts)

    def hollow_code(self) -> OldSide | None:
        """The code as it was, with what came with the story there and empty.

        None where the new tests compile without that, as far as can be told, or nobody can make it.
        """
        if self.sides.mixed:
            return None
        contents = self.story.place.measure.sides([*self.sides.code, *self.sides.tests])
        words = set[str]()
        for change in self.sides.tests:
            words |= words_of((contents.get(change.after or "") or b"").decode("utf-8", "replace"))
        texts = dict[str, bytes]()
        used = set[str]()  # names that came with the story, and that its tests say
        functions = set[str]()
        is_compiled = False
        for change in self.sides.code:
            new = contents.get(change.after or "")
            old = contents.get(change.before or "")
            if new is None:
                continue
            try:
                found = hollowed(change.path, old, new)
            except NoGrammar:
                return None
            if found is not None:
                texts[change.path] = found.text
                used |= words & _names_of(change.path, old, new)
                functions |= found.functions
                is_compiled = is_compiled or found.is_compiled
        # What is no function keeps its value, which only a language that compiles has to bear.
        if not used or not (is_compiled or used <= functions):
            return None
        whole = [change for change in self.sides.code if change.path not in texts]
        return self.with_texts(whole, texts)

    def with_texts(self, changes: Sequence[Change], texts: Mapping[str, bytes]) -> OldSide:
        """These changes, and those to files that are to be replaced by other texts."""
        story = self.story
        measure = story.place.measure
        if not texts:
            return OldSide(changes=tuple(changes), tree=story.start.tree)
        tree = measure.with_texts(story.start.tree, texts)
        replaced = [it for it in measure.changes(tree, story.end.tree) if it.path in texts]
        return OldSide(changes=(*changes, *replaced), tree=tree)

    # The time there is

    def begin(self, *, alone: bool, exchanged: Sequence[Change] = ()) -> None:
        """See that there is a way and enough time; from here on it runs.

        `alone`: only changed files have to run.  `exchanged` is what will be; what changed as well
        must not stand where it comes back.
        """
        run = self.story.run
        place = self.story.place
        wanted = run.policy.experiments
        if wanted == "off":
            raise Impossible
        if place.repo is None:
            raise Impossible("there is no git repository")
        if place.has_neighbours:
            raise Impossible("others work here too")
        if place.checks_clean_up:
            raise Impossible(CLEANED_UP)
        why = obstacle(place.measure, exchanged, self.story.changes) if exchanged else ""
        if why:
            raise Impossible(why)
        first = {result.name: result.duration_s for result in run.session.baseline.results}
        plain_s = first.get(self.now.name, self.now.duration_s)
        share_s = (_SHARE_OF_FILES if alone else _SHARE_OF_ALL) * plain_s
        room_s = max(_LEAST_S * slowness(), share_s)
        longest_s = _TIMES_ALONE * max(plain_s, self.now.duration_s)
        self._longest_s = max(_LEAST_ALONE_S, longest_s)
        if wanted == "always":
            room_s = 4 * run.config.checks.timeout
            self._longest_s = run.config.checks.timeout
        left_s = run.patience.left() if run.patience else room_s
        if left_s < min(room_s, share_s + 1):
            raise Impossible("there is no time left for it in this turn")
        self._until = time.monotonic() + min(room_s, left_s)

    # Running it

    async def run_tests(
        self, files: Sequence[str] | None, names: Sequence[str] = ()
    ) -> CheckResult | None:
        """Its tests apart from what else it does; None where there is no time left."""
        found = self.found
        select = found.runner.named(names) if found else ""
        root = self.story.place.root
        check = self._check(check_of, self._longest_s)
        afresh = self._is_built_afresh
        return await self._run(
            lambda stop: run_once(
                check, found, root, files=files, select=select, afresh=afresh, stop=stop
            )
        )

    async def run_verify(self) -> CheckResult | None:
        """The very command of a story, as a whole; None where there is no time left."""
        root = self.story.place.root
        check = self._check(verify_of, self.story.run.config.checks.timeout)
        afresh = self._is_built_afresh
        return await self._run(
            lambda stop: run_once(check, self.found, root, whole=True, afresh=afresh, stop=stop)
        )

    @property
    def _is_built_afresh(self) -> bool:
        """Whether settings changed that its runner does not build anew for."""
        found = self.found
        return found is not None and any(
            found.runner.is_blind_to(change.path) for change in self.story.changes
        )

    async def run_as_ever(self) -> CheckResult:
        """The check as it is run for every story, a second time where it is red."""
        run = self.story.run
        root = self.story.place.root
        place = self.story.place
        check = check_of(self.argv, run.config.checks.timeout, place.check_box, lane=place.seat)

        def carry_out(gone: Callable[[], bool]) -> tuple[CheckResult, ...]:
            return run_checks([check], root, stop=lambda: gone() or run.stop.requested)

        ran = await in_thread(carry_out)
        if not ran:
            raise Stopped
        return ran[0]

    def _check(self, made: Callable[..., Check], longest_s: float) -> Check:
        timeout = min(self.left_s, longest_s, self.story.run.config.checks.timeout)
        place = self.story.place
        return made(self.argv, timeout, place.check_box, lane=place.seat)

    async def _run(
        self, once: Callable[[Callable[[], bool]], CheckResult | None]
    ) -> CheckResult | None:
        run = self.story.run
        if self.left_s <= 0:
            return None
        began = time.monotonic()
        result = await in_thread(lambda gone: once(lambda: gone() or run.stop.requested))
        if result is None:
            raise Stopped
        self.took_s = time.monotonic() - began
        return self._named(result)

    def _named(self, result: CheckResult) -> CheckResult:
        """The same, with words that are known for those of a stub."""
        report = result.report
        if report is None or not any(self._tag in words for words in report.said.values()):
            return result
        said = {name: words_of_stub(words, self._tag) for name, words in report.said.items()}
        return msgspec.structs.replace(result, report=msgspec.structs.replace(report, said=said))


def _renamed(code: Sequence[Change], contents: Mapping[str, bytes]) -> list[RenamedFile]:
    """The code files that came and are older ones, which went, under another name."""
    gone = {it.path: _as_text(contents.get(it.before or "")) for it in code if not it.after}
    came = {it.path: _as_text(contents.get(it.after or "")) for it in code if not it.before}
    return renamed_files(gone, came) if gone and came else []


def _names_of(path: str, old: bytes | None, new: bytes) -> frozenset[str]:
    """The names that a file defines only now."""
    before = old.decode("utf-8", "replace") if old is not None else None
    return added_names(path, before, new.decode("utf-8", "replace"))


def _as_text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "surrogateescape")


def _tested(
    story: StoryOnTrial, before: TestReport | None, now: TestReport | None
) -> frozenset[str]:
    """Changed files in which the runner found tests: of one that was there, before the story.

    A helper that the story put a test into is a helper still: others may need it as it was.
    """
    had = _files_of(before)
    has = _files_of(now)
    prefix = story.prefix
    return frozenset(
        it.path
        for it in story.changes
        if it.path.removeprefix(prefix) in (has if it.before is None else had)
    )


def _files_of(report: TestReport | None) -> frozenset[str]:
    """The files that a report names."""
    if report is None:
        return frozenset()
    names = (*report.passed, *report.failed, *report.skipped)
    return frozenset(filter(None, map(file_of, names)))


def _sides(
    story: StoryOnTrial, judge: Judge, found: FoundRunner | None, tested: frozenset[str]
) -> Sides:
    """The change taken apart, as this command sees it."""
    prefix = story.prefix
    loads: set[str] = set()
    scripts: set[str] = set()
    if found is not None:
        loads = {f"{prefix}{path}" for path in found.loads(story.place.root)}
        scripts = {f"{prefix}{path}" for path in found.scripts}
    contents = story.place.measure.sides(story.changes)
    placed = place_changes(story.place.measure, story.start.tree, prefix, judge, story.changes)
    trees = (story.start.tree, story.end.tree)
    scripts |= loads
    scripts |= helpers_of_tests(story.place.measure, trees, prefix, story.changes, contents)
    sides = split(story.changes, contents, found, scripts, prefix, placed, tested)
    sides = with_renamed_tests(sides, _renamed(sides.code, contents), contents)
    code = tuple(it for it in sides.code if not story.is_made_by_checks(it.path))
    loaded = tuple(it.path for it in sides.tests if it.path in loads and it.before)
    return msgspec.structs.replace(sides, code=code, loaded=loaded)
