"""Both benchmarks by one command: side by side, each line with its name, failures told."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import numbers

_BENCHMARK = """\
import sys
from pathlib import Path
told = sys.argv[1:]
if "--page" in told:
    Path(told[1]).open("a").write("written by NAME\\n")
else:
    Path(told[1]).write_text(" ".join(told[2:]) + "NAME")
    print("2 to run")
    sys.exit(ENDS)
"""


def _parts(root: Path, monkeypatch: pytest.MonkeyPatch, *, ends: int) -> None:
    """Two benchmarks that end at once, the second with this exit code."""
    (root / "figures").mkdir()
    parts = []
    for name, ended in (("first", 0), ("second", ends)):
        text = _BENCHMARK.replace("NAME", name).replace("ENDS", str(ended))
        (root / "figures" / f"{name}.py").write_text(text)
        part = numbers.Part(f"figures.{name}", root / f"{name}.json", root / f"{name}.published")
        parts.append(part)
    monkeypatch.setattr(numbers, "PARTS", tuple(parts))
    monkeypatch.setattr(numbers, "PAGE", root / "page.md")
    monkeypatch.chdir(root)


def test_both_run_and_each_line_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command, both benchmarks; the page stays as it is unless it is asked for."""
    _parts(tmp_path, monkeypatch, ends=0)
    assert numbers.main(["--short"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert {"first | 2 to run", "second | 2 to run"} <= set(said)
    assert said[-1] == "It took 0 minutes; raw results are in peers/."
    assert (tmp_path / "first.json").read_text() == "--shortfirst"
    assert not (tmp_path / "page.md").exists()


def test_what_was_made_is_published_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results take the place of those that were published, and the page is written anew."""
    _parts(tmp_path, monkeypatch, ends=0)
    assert numbers.main(["--publish"]) == 0
    assert (tmp_path / "second.published").read_text() == "second"
    assert (tmp_path / "page.md").read_text() == "written by first\nwritten by second\n"


def test_one_that_fails_is_named_and_nothing_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the figures on a page would be worse than old ones."""
    _parts(tmp_path, monkeypatch, ends=3)
    assert numbers.main(["--publish"]) == 1
    assert "error: second did not end well" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()


def test_a_sample_is_not_published(capsys: pytest.CaptureFixture[str]) -> None:
    """The page shows all nights and the usual sample."""
    with pytest.raises(SystemExit):
        numbers.main(["--short", "--publish"])
    assert "--publish goes without --short" in capsys.readouterr().err
