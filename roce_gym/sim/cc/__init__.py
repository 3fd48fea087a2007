"""Sender algorithms: a file each, and a line in `registry.py`."""
