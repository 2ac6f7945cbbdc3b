"""PURE: from a change to its mutants, language by language."""
