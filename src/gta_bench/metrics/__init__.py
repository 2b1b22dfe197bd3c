"""Scores as pure functions: `compat` gives upstream's numbers, `strict` the corrected ones."""
