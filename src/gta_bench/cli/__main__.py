"""`python -m gta_bench.cli` is `gta`."""

from gta_bench.cli import main

main()
