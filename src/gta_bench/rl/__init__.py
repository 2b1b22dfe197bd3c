"""Environments for reinforcement learning: `reset`, `step` and a reward, on any ToolSource."""
