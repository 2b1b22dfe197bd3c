"""The Inspect tasks: datasets, solvers and scorers under the names `gta_bench/…`."""
