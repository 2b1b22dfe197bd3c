"""Parsers of untrusted files. They only run in the jail and import nothing from this package.

Each module is sent into the jail as the source of a driver (`confine.jail.Jail.run_snippet`). It
finds the file as `file` and its options as `options.json` in the current folder. `finish` returns
a JSON object, or a sentence that says why the file is refused.
"""
