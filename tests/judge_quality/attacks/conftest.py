from tests.judging.conftest import equipment

__all__ = ["equipment"]
