"""Settings: what there is (`model`), where it is written (`sources`), what is in force (`load`).

Names are resolved when they are used: whoever has the settings already needs no TOML reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ralphloop.config.load import Loaded, check_config, load_config, user_file
    from ralphloop.config.model import Config
    from ralphloop.config.sources import Problem

__all__ = ["Config", "Loaded", "Problem", "check_config", "load_config", "user_file"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ralphloop.config import load

    return getattr(load, name)
