"""Leaderboard entries: published rows, signed bundles, checks, and tables with intervals."""
