"""The monitor: one screen about a run, fed by the journal and nothing else.

`source` reads and gives `Facts`; `panels` says them as a `Screen`, `pages` has the detail views,
both in lines of words with a tone (`paint`).  Only `screens` and `app` know Textual; they draw.
"""
