"""Families of generated tasks whose truth is known."""
