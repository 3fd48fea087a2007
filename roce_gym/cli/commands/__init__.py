"""The arguments of each command, and the function that each calls.

What needs the simulator is imported when it is called: `--help` shall not wait for it.
"""
