"""The way in: what must be fast is answered before the command line framework is imported."""

import os
import sys


def main() -> int:
    _import_nothing_from_here()
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from ralphloop import __version__

        sys.stdout.write(f"ralph {__version__}\n")
        return 0
    if arguments[:1] == ["hook"]:
        from ralphloop.hook import entry

        if arguments[1:2] and arguments[1] in entry.EVENTS:
            return entry.main(arguments[1])
    from ralphloop.cli.main import run

    code = run(arguments)
    if "temporalio" in sys.modules:
        _leave_at_once(code)
    return code


def _leave_at_once(code: int) -> None:
    """End here: threads of Temporal's library may abort an interpreter that takes itself down."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads it any more
    os._exit(code)


def _import_nothing_from_here() -> None:
    """Started with `python -m`, Python looks for modules in the user's repository first."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:
        return  # the directory is gone
    if sys.path[0] in ("", here) and here != package:
        del sys.path[0]


if __name__ == "__main__":
    sys.exit(main())
