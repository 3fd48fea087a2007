"""Validation of the simulator against measurements of others; `python -m eval.validate`."""
