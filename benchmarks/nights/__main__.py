"""Run the nights: `python -m benchmarks.nights [--short] [--peers DIR] [--only NIGHT]`."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.nights.live import PROVIDER
from benchmarks.nights.measure import Live, Result, measure
from benchmarks.nights.nights import LIVE_NIGHT, NIGHTS, Night
from benchmarks.nights.show import costs, picture, table
from benchmarks.nights.supervisors import SUPERVISORS, Supervisor
from benchmarks.progress import Progress
from ralphloop.atomic import write_atomic
from tests.e2e.clis import CLIS, NotInstalled

RESULTS = Path(__file__).with_name("results.json")
BEGIN = "<!-- nights: begin -->"
END = "<!-- nights: end -->"


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.page:
        write_down(options.out or RESULTS, options.page)
        return 0
    if missing := _what_is_missing():
        sys.stderr.write(f"error: {missing}\n  next: make e2e installs it\n")
        return 1
    nights = [night for night in NIGHTS if _is_asked(night, options)]
    supervisors = [kind(options.peers) for kind in SUPERVISORS]
    names = options.supervisor or (["ralph", "bare loop"] if options.short else [])
    asked = [it for it in supervisors if not names or it.name in names]
    here = [it for it in asked if it.is_there]
    for absent in asked:
        if absent not in here:
            print(f"not here: {absent.name}; `make peers` brings it ({absent.source})")
    if not nights or not here:
        sys.stderr.write("error: nothing to run; --list names nights and supervisors\n")
        return 2
    if options.list:
        _list(nights, here)
        return 0
    live = _agreed(here, options) if options.live else None
    if options.live and live is None:
        return 1
    if live is not None:
        nights = [LIVE_NIGHT]
    book = _Book(options.out, here, nights)
    lame = _run(here, nights, options, live, book)
    whole = book.whole()
    print(costs(whole) if live else table(whole))
    if lame:
        sys.stderr.write(f"error: {lame} of these nights never started the agent: no results\n")
    return 1 if lame else 0


class _Book:
    """The results so far, in a file that is written anew after each night."""

    def __init__(
        self, path: Path | None, supervisors: list[Supervisor], nights: list[Night]
    ) -> None:
        self._path = path
        self._lock = threading.Lock()
        known = json.loads(path.read_text()) if path is not None and path.exists() else {}
        self._versions = known.get("versions", {}) | {it.name: it.version for it in supervisors}
        self._settings = known.get("settings", {}) | {it.name: it.settings for it in supervisors}
        self._nights = known.get("nights", {}) | {night.name: night.tells for night in nights}
        found = known.get("results", [])
        self._results = {(it["night"], it["supervisor"]): it for it in found}

    def add(self, result: Result) -> None:
        """Keep a result; one of the same night and supervisor is replaced."""
        with self._lock:
            self._results[result.night, result.supervisor] = result.as_json()
            if self._path is not None:
                page = json.dumps(self.whole(), indent=1) + "\n"
                write_atomic(self._path, page.encode())

    def whole(self) -> dict[str, Any]:
        """Everything, with date and versions, in the order of the nights."""
        order = {night.name: number for number, night in enumerate(NIGHTS)}
        nights = sorted(self._nights, key=lambda name: order.get(name, len(order)))
        known = {kind.name: number for number, kind in enumerate(SUPERVISORS)}
        names = sorted(self._versions, key=lambda name: known.get(name, len(known)))
        found = sorted(
            self._results.values(), key=lambda it: (nights.index(it["night"]), it["supervisor"])
        )
        return {
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "claude": CLIS["claude"].version,
            "versions": {name: self._versions[name] for name in names},
            "settings": {name: self._settings[name] for name in names},
            "nights": {name: self._nights[name] for name in nights},
            "results": found,
        }


def write_down(results: Path, page: Path) -> None:
    """Put the table of raw results into a page, and the picture beside it."""
    whole = json.loads(results.read_text())
    before, mark, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{mark}\n{table(whole)}\n{END}{after}")
    (page.parent / "images" / "nights.svg").write_text(picture(whole))


def _what_is_missing() -> str:
    """Why no night can be run here; empty where the CLI is installed."""
    try:
        found = CLIS["claude"].program
    except NotInstalled as error:
        return str(error)
    return "" if found.exists() else f"{found} is gone"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nights", description=__doc__)
    parser.add_argument("--short", action="store_true", help="the six nights that tell most")
    parser.add_argument("--only", action="append", default=[], help="this night; again for more")
    parser.add_argument("--supervisor", action="append", default=[], help="this supervisor only")
    parser.add_argument(
        "--peers", type=Path, default=Path("peers"), help="where the others are cloned"
    )
    parser.add_argument(
        "--jobs", type=int, default=4, help="nights at the same time; they mostly wait"
    )
    parser.add_argument("--out", type=Path, help="write the raw results as JSON")
    parser.add_argument("--keep", type=Path, help="copy what each night left, to look at it")
    parser.add_argument("--page", type=Path, help="run nothing: put the last results into a page")
    parser.add_argument("--live", action="store_true", help="ask a real model; costs money")
    parser.add_argument("--dry", action="store_true", help="--live without spending: the script")
    parser.add_argument("--max-cost", type=float, default=1.0, help="--live: dollars each")
    parser.add_argument("--yes", action="store_true", help="--live: do not ask")
    parser.add_argument("--list", action="store_true", help="name nights and supervisors")
    return parser


def _is_asked(night: Night, options: argparse.Namespace) -> bool:
    if options.only:
        return night.name in options.only
    return night.is_short or not options.short


def _list(nights: list[Night], supervisors: list[Supervisor]) -> None:
    for night in nights:
        print(f"{night.name}: {night.tells}")
    for supervisor in supervisors:
        print(f"{supervisor.name} ({supervisor.version}): {supervisor.settings}")


def _agreed(supervisors: list[Supervisor], options: argparse.Namespace) -> Live | None:
    """What a real model may cost, after a yes; none without a key or a yes."""
    key = os.environ.get("ANTHROPIC_API_KEY", "")
    if not key and not options.dry:
        sys.stderr.write("error: no key\n  next: set ANTHROPIC_API_KEY, or try it with --dry\n")
        return None
    most = options.max_cost * len(supervisors)
    print(
        f"A real model will be asked by {len(supervisors)} supervisors, for at most"
        f" ${options.max_cost:.2f} each, ${most:.2f} together. A request under way is still paid."
    )
    if options.dry:
        return Live(key=key or "sk-ant-scripted-0000", budget_usd=options.max_cost)
    if not options.yes and input("Go on? Type yes: ").strip() != "yes":
        print("Nothing was started.")
        return None
    return Live(key=key, upstream=PROVIDER, budget_usd=options.max_cost)


def _run(
    supervisors: list[Supervisor],
    nights: list[Night],
    options: argparse.Namespace,
    live: Live | None,
    book: _Book,
) -> int:
    """Run each night with each supervisor; how many came to no result."""
    pairs = [(night, supervisor) for night in nights for supervisor in supervisors]
    measured = {} if live else _measured()
    # The longest first, so that no single one is waited for at the end.
    pairs.sort(key=lambda it: -measured.get((it[0].name, it[1].name), 0.0))
    todo = [(night.name, supervisor.name) for night, supervisor in pairs]
    progress = Progress(todo, measured, options.jobs)
    print(progress.beginning(), flush=True)

    def run(pair: tuple[Night, Supervisor]) -> bool:
        night, supervisor = pair
        result = measure(supervisor, night, options.keep, live)
        if not result.starts:  # it is not set up here, which says nothing of what it does
            words = (result.last_words.splitlines() or ["it said nothing"])[-1]
            after = progress.after((night.name, supervisor.name))
            print(f"{night.name} / {supervisor.name}: never started the agent: {words} ({after})")
            return False
        print(
            f"{night.name} / {supervisor.name}: {result.truly_done} truly done,"
            f" {result.falsely_done} falsely called done, {result.starts} starts,"
            f" ${result.dollars:.2f}, {result.wall_s:.0f} s, {result.ended}"
            f" ({progress.after((night.name, supervisor.name))})",
            flush=True,
        )
        book.add(result)
        return True

    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        return sum(not is_result for is_result in pool.map(run, pairs))


def _measured() -> dict[tuple[str, str], float]:
    """How long each night took each supervisor when it was last measured."""
    known = json.loads(RESULTS.read_text())["results"] if RESULTS.exists() else []
    return {(it["night"], it["supervisor"]): float(it["wall_s"]) for it in known}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
