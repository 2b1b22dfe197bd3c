"""Frozen types for everything that is read or written."""
