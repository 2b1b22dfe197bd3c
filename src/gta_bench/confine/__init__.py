"""Confinement: the one place for a task's files, the one way to run foreign code."""
