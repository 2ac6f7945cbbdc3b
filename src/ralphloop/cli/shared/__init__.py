"""What several commands use; each command itself is a module of its name beside this package."""
