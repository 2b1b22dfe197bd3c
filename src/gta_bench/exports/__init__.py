"""Exports of tasks and traces in the formats of other frameworks."""
