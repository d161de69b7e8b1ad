"""Which preferences belong to the rows of a data set."""

from gbmrank.data import RankingData
from gbmrank.preferences.graphs import PreferenceGraphs

__all__ = ["preferences_for"]


def preferences_for(own: PreferenceGraphs | None, data: RankingData) -> PreferenceGraphs | None:
    """Return the preferences between the rows of a data set, or None when there are only labels.

    Parameters
    ----------
    own : PreferenceGraphs or None
        Those that an objective or a metric was made with; else the data's own count. Where the
        data is a part of the data set they were made for, they are cut to its rows.
    data : RankingData
        The data set.

    Raises
    ------
    DataError
        When they are for another number of rows or queries; it tells both.
    """
    graphs = data.preferences if own is None else own
    if graphs is None:
        return None
    if data.subset is not None and graphs.n_rows == data.subset.n_rows:
        graphs = graphs.take(data.subset.rows)
    graphs.check_rows(data.groups)
    return graphs
