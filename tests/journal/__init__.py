"""Tests of the journal and of the values on their way into it."""
