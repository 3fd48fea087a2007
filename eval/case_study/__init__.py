"""Eight training jobs on one fabric, before and after tuning, beside published figures."""
