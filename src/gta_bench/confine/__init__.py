"""Confinement: the workspace for a task's files, and the jail for foreign code."""
