"""The pictures of the page, taken by a real browser from a real page: `make pictures`.

The nights are those of the tests: one that goes on and asks, and one that is over, with a weakened
test in it.  Nothing is drawn by hand.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.cli.test_serve import Served, served
from tests.docs.pages import ROOT
from tests.e2e.chromium import Page, browser
from tests.loop.projects import UNITTEST, sandbox
from tests.night import test_review as nights
from tests.tools import TOOLS
from tests.ui.monitor_nights import running

IMAGES = ROOT / "docs" / "images"
_PHONE = 390
_DESK = 1280


class Picture(NamedTuple):
    """One screen as it is shown."""

    name: str
    end: str  # of its address
    width: int
    height: int


OF_A_RUN = (Picture("page", "", _PHONE, 844),)
OF_A_MORNING = (
    Picture("page-story", "story?id=US-3", _PHONE, 844),
    Picture("page-story-wide", "story?id=US-3", _DESK, 860),
)


def prepare_surroundings(home: Path) -> None:
    """Nothing of the person who draws is in a picture."""
    os.environ |= {"HOME": str(home), "RALPH_TRUST": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    for who in ("AUTHOR", "COMMITTER"):
        os.environ[f"GIT_{who}_NAME"] = "A Person"
        os.environ[f"GIT_{who}_EMAIL"] = "person@example.com"


def stand_still(page: Page, at: float) -> None:
    """The browser's clock shows the evening of the night that is looked at."""
    source = f"Date.now = () => {at * 1000:.0f}"
    page.command("Page.addScriptToEvaluateOnNewDocument", source=source)


def take(page: Page, site: Served, pictures: tuple[Picture, ...]) -> None:
    """Let the browser in, and take each of them."""
    page.visit(site.address, width=_PHONE)
    page.command("Runtime.evaluate", expression="document.querySelector('button').click()")
    page.until("!!document.getElementById('stories')")
    address = site.address.partition("?")[0]
    for one in pictures:
        page.visit(f"{address}{one.end}", width=one.width, height=one.height)
        page.until("document.readyState === 'complete'")
        (IMAGES / f"{one.name}.png").write_bytes(page.screenshot(whole=False))


def main() -> int:
    """All of them; without a browser none, and that is said."""
    if not any(shutil.which(name) for name in TOOLS["chromium"]):
        sys.stderr.write("no Chromium here: the pictures of the page stay as they are\n")
        return 0
    with tempfile.TemporaryDirectory() as place:
        prepare_surroundings(Path(place))
        night = running(Path(place) / "shop")
        made = sandbox(
            Path(place) / "morning",
            nights.APPEND + nights.AGENT,
            stories=nights.STORIES,
            checks=UNITTEST,
            files=nights.FILES,
        )
        ended = made.run()
        if ended.code != 0:
            sys.stderr.write(ended.text)
            return 1
        with browser(Path(place)) as page, served(made.root, "--port", "0") as site:
            take(page, site, OF_A_MORNING)
            with night.held(), served(night.project.root, "--port", "0") as other:
                stand_still(page, night.clock())
                take(page, other, OF_A_RUN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
