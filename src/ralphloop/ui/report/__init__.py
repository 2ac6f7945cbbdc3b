"""The morning report: one page that says what is proven, what waits, and what it cost.

`gather` asks the journal, the story file and git; `build` makes one frozen `Report` of the answers
(`model`, `tally`, `groups`); `render` and the JSON encoder only show it.
"""

from __future__ import annotations

from ralphloop.ui.report.gather import gather, write_report

__all__ = ["gather", "write_report"]
