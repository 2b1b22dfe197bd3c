"""Tasks and traces in the formats of other frameworks."""
