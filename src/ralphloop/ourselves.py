"""How this very program starts itself again.

Everything we start works in the user's repository, and Python looks for modules in its working
directory first.  A repository with a `click.py` is ordinary, and one with a `ralphloop/` may be a
trap; so nobody but this module says how we are called.
"""

from __future__ import annotations

import sys


def ourselves(module: str = "ralphloop") -> tuple[str, ...]:
    """The command line that runs a module of ours, whatever the directory it runs in holds."""
    return sys.executable, "-P", "-m", module
