"""Load, fetch, verify and describe benchmark files as records."""
