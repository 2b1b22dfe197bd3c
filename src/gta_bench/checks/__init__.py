"""Decide the checks of a leaf over what a system delivered, without a model."""
