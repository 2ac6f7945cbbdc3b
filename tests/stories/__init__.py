"""Stories: loading, validating, choosing and marking."""
