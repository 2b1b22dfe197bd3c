"""`python -m gta_bench` is `gta`, where the folder of scripts is not on PATH."""

from gta_bench.cli import main

main()
