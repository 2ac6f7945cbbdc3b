"""The Claude Code plugin, as package data; `ralph plugin` puts it where Claude Code can use it."""
