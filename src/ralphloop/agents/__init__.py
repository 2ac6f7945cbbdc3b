"""How to start each coding agent, watch it and stop it with everything it started."""
