"""Weighted against plain RankNet and ListMLE on OHSUMED (Chen et al. 2009, Table 1).

The paper finds that weights from its bound on NDCG improve both losses. About five minutes on two
cores.

Run it with ``python examples/reproduce/chen2009.py --data FOLDER``, or with ``--small`` on
built-in data; the options are those of ``gbmrank reproduce``.
"""

import sys

from gbmrank.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "chen2009", *sys.argv[1:]]))
