"""Training scripts, one an algorithm, with their configurations beside them."""
