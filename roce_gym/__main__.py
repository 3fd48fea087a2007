"""`python -m roce_gym` is the command `roce-gym`."""

import sys

from roce_gym.cli import main

if __name__ == "__main__":
    sys.exit(main())
