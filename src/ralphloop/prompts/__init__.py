"""What the agent is told: built from parts, stable first, within a size budget."""

from __future__ import annotations

from ralphloop.prompts.build import STATUS_SECTION, Parts, Prompt, build_prompt, has_status_section

__all__ = ["STATUS_SECTION", "Parts", "Prompt", "build_prompt", "has_status_section"]
