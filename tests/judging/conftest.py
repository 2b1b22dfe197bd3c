from tests.agents.conftest import check_golden

__all__ = ["check_golden"]
