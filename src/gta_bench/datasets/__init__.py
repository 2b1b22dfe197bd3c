"""Benchmark files become records: load, fetch, verify, describe."""
