"""Regret bounds while boosting proceeds (Calauzenes, Usunier and Gallinari 2013).

The paper bounds what NDCG can lose by the surrogate regret of order-preserving losses (Table 2),
and shows that such losses cannot be right for ERR and AP (Theorem 3.3). Simulated, so both regrets
are exact. About a minute on two cores.

Run it with ``python examples/reproduce/calauzenes2013.py``, or with ``--small``
for a shorter run; the options are those of ``gbmrank reproduce``.
"""

import sys

from gbmrank.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "calauzenes2013", *sys.argv[1:]]))
