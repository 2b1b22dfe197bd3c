"""File contents: one reader for each kind, for the Read* tools and for the judge's evidence."""
