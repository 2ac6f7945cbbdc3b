"""The demo: a toy repository and a scripted night in which everything goes wrong once."""
