"""Searches settings that do best on average over episodes: `python -m eval.search --help`."""
