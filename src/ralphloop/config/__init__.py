"""Settings: what there is (`model`), where it is written (`sources`), what is in force (`load`)."""

from __future__ import annotations

from ralphloop.config.load import Loaded, check_config, default_user_file, load_config
from ralphloop.config.model import Config
from ralphloop.config.sources import Problem

__all__ = ["Config", "Loaded", "Problem", "check_config", "default_user_file", "load_config"]
