"""The few files of the page; they tell nothing of any project."""

from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FileAnswer = Callable[[Request], Response]
_HERE = Path(__file__).parent


def file_answer(kind: str, *paths: Path) -> FileAnswer:
    """An answer that is always these files, one after the other."""
    content = b"\n".join(path.read_bytes() for path in paths)
    return lambda _request: Response(content, media_type=kind)


FILES: dict[str, FileAnswer] = {
    "/page.css": file_answer("text/css", _HERE.parent / "report" / "look.css", _HERE / "page.css"),
    "/page.js": file_answer("text/javascript", _HERE / "page.js"),
    "/icon.svg": file_answer("image/svg+xml", _HERE / "icon.svg"),
}
# In front of the path, for the links of messages: it leads devices on that were let in before.
DOOR: dict[str, FileAnswer] = {
    "/": file_answer("text/html", _HERE / "door.html"),
    "/door.js": file_answer("text/javascript", _HERE / "door.js"),
    "/page.css": FILES["/page.css"],
    "/icon.svg": FILES["/icon.svg"],
}
