"""GTA scored as the published evaluator does, quirks included."""
