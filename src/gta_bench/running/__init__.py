"""Runs from their description to stored results: plan, preflight, execute, resume, merge, judge."""
