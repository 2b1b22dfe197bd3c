"""Traces of other programs, read into one record whatever their format."""
