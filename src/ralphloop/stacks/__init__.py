"""What a repository is made of: `detect`, with a table that is data."""
