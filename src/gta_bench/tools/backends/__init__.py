"""Backends of tools: one client for endpoints, worker processes for local models, weights."""
