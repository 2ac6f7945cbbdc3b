"""The page: how a run stands, live in a browser, and what a person may ask of it from there.

`devices` knows who may look, `guard` is the wall every request has to pass, `parts` turns one look
(`night`) into pieces of HTML, `live` watches and tells whoever is looking what changed, `site` puts
them together.  Starlette and uvicorn come with the extra `ralphloop[web]`; nothing else needs them.

Steering is handed in by the command, so that the page asks exactly what `ralph answer` asks.
"""
