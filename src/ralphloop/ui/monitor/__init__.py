"""The monitor: one screen about a run, fed by the journal and nothing else.

`source` reads (journal, story file, transcript of the running agent) and gives `Facts`; `model`
computes a `Screen` of them, `pages` the detail views, both pure; `panels` says it in lines of
styled words.  Only `widgets`, `screens` and `app` know Textual, and they only draw.
"""
