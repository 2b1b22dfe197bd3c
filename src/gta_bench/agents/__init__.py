"""Agents: one decision of a model, from a history and the tools on offer."""
