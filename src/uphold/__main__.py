"""`python -m uphold` is `uphold`."""

import sys

from uphold.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
