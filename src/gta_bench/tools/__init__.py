"""The toolbox: one module a tool, one contract, real backends."""
