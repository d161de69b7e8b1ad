"""Pairs of movies: linear, hinge and logistic loss (Duchi, Mackey and Jordan 2010, Table 1).

The paper finds that its linear loss, which is consistent under low noise, ranks held-out movies
better than the two losses that are not. About ten minutes on two cores.

Run it with ``python examples/reproduce/duchi2010.py --data FOLDER``, or with ``--small`` on
built-in data; the options are those of ``gbmrank reproduce``.
"""

import sys

from gbmrank.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "duchi2010", *sys.argv[1:]]))
