"""What the document tools share: pandoc, pictures, fonts, tables, slides, LibreOffice."""
