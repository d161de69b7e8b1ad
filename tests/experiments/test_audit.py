"""Facts about the data."""

import numpy as np

from gbmrank.experiments.preparation import audit
from gbmrank.experiments.sources import read_source


def test_the_audit_counts_what_is_there():
    x = np.array([[1.0, np.nan], [1.0, np.nan], [1.0, np.inf], [1.0, np.nan], [2.0, 0.0]])
    found = audit(read_source((x, [0, 2, 0, 1, 1], ["a", "a", "a", "b", "c"])), ("a note",))
    assert found["duplicate_rows"] == 1  # the row of query b repeats one of another query
    assert found["singletons"] == 2
    assert found["longest"] == 3
    assert found["without_relevant"] == 0
    assert found["label_counts"] == {"0": 2, "1": 2, "2": 1}
    assert found["notes"][-1] == "a note"


def test_queries_that_teach_nothing_are_counted():
    x = np.arange(6.0)[:, None]
    found = audit(read_source((x, [0, 0, 1, 1, 0, 1], [1, 1, 2, 2, 3, 3])))
    assert (found["without_relevant"], found["all_labels_equal"]) == (1, 2)
    assert found["duplicate_rows"] == 0
