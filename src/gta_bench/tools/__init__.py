"""The tools: one module for each, one contract, real backends."""
