from tests.content.conftest import jail

__all__ = ["jail"]
