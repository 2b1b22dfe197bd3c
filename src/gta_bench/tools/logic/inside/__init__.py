"""Our side of the jail for Solver, Plot and Prover: sources that run there, not here."""
