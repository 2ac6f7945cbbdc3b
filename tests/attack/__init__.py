"""What a hostile agent, repository, output or local user tries; each once, through the front door."""
