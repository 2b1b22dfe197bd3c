"""Shared by the document tools: pandoc, pictures, fonts, tables, slides, workbooks."""
