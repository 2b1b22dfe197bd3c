"""Drivers of Solver, Plot and Prover: sources that run inside the jail."""
