"""GTA-Atomic scored soundly: total functions, joined by task, never above 100."""
