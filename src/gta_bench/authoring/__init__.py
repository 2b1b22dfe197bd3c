"""Tasks that people write: scaffolds, lint, preview, pilot."""
