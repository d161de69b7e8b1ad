"""``python -m gbmrank`` is the command ``gbmrank``."""

import sys

from gbmrank.cli import main

if __name__ == "__main__":
    sys.exit(main())
