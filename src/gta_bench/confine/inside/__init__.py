"""What runs on the far side of the wall: standard library only, no import of the package."""
