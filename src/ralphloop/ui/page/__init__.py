"""The page: how a run stands, live in a browser, and what a person may ask of it from there.

Starlette and uvicorn come with the extra `ralphloop[web]`; nothing else needs them.  Steering is
handed in by the command, so that the page asks exactly what `ralph answer` asks.
"""
