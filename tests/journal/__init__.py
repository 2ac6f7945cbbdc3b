"""The journal's tests, with the helpers they share."""
