"""The JSON Schema of prd.json."""

from importlib.resources import files

SCHEMA_NAME = "prd.schema.json"


def schema_text() -> str:
    return files("ralphloop.stories").joinpath(f"data/{SCHEMA_NAME}").read_text(encoding="utf-8")
