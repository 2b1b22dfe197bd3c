from importlib.util import find_spec

# `make test-core` installs the clients and runs these tests.
collect_ignore_glob = [] if find_spec("anthropic") else ["test_*.py"]
