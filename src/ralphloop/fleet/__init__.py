"""A night on many machines: one start of an agent travels, everything else stays here."""
