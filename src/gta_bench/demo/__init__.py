"""The demo: three small tasks of our own, real offline tools, a scripted model."""
