"""Parsers of foreign files. They run in the jail only, so they import nothing of this package.

Each module is sent into the jail as the source of a driver (`confine.jail.Jail.run_snippet`) and
finds the file as `file` and its options as `options.json` in the current folder. `finish` replies
with a JSON object; a reply that is anything else says in words why the file is refused.
"""
