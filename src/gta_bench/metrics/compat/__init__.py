"""GTA-Atomic as the published evaluator scores it, quirks included."""
