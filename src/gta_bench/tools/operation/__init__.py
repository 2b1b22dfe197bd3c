"""Tools that search the web, read files, draw on images and write files."""
