"""What tuning and adapting can gain in each environment: `python -m eval.headroom --help`."""
