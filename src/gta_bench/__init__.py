"""Measure how well LLM agents use real tools: GTA-Atomic and GTA-Workflow."""
