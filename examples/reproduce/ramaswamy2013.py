"""Where each least-squares surrogate is right (Ramaswamy, Agarwal and Tewari 2013).

The paper proves under which conditions a surrogate with its decoder is calibrated for Precision,
ERU, MAP and pairwise disagreement. Simulated: regret against the number of queries, inside and
outside the conditions. A few minutes on two cores.

Run it with ``python examples/reproduce/ramaswamy2013.py``, or with ``--small``
for a shorter run; the options are those of ``gbmrank reproduce``.
"""

import sys

from gbmrank.cli import main

if __name__ == "__main__":
    sys.exit(main(["reproduce", "ramaswamy2013", *sys.argv[1:]]))
