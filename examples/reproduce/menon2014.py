"""Proper, bipartite and push risks on four UCI sets (Menon and Williamson 2014).

The paper compares 14 methods (Tables 3-7), and shows what the minimiser of each risk is as a
function of the chance of being relevant (Figures 1-4). Several minutes on two cores.

Run it with ``python examples/reproduce/menon2014.py --data FOLDER``, or with ``--small``
on built-in data; the options are those of ``gbmrank reproduce``.
"""

import sys

from gbmrank.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "menon2014", *sys.argv[1:]]))
