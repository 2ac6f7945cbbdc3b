"""Telling a person who is not looking: desktop, command, webhook."""
