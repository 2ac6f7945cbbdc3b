"""The review: what an agent claims beside what was found, story by story, one key each."""
