"""Ralph runs a headless coding agent over a story list until the work is really done."""

__version__ = "0.1.0"
