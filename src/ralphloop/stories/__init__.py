"""Stories: loading, validating, choosing and marking the units of work."""
