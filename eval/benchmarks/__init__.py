"""How fast the simulator is; `python -m eval.benchmarks`."""
