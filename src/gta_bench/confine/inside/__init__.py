"""Code that runs inside the jail: standard library only, no other import of this package."""
