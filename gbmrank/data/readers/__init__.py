"""Files to arrays: LETOR text, CSV and Parquet tables, TREC qrels and runs."""

from gbmrank.data.readers.frames import Header, read_csv, read_parquet, table_format
from gbmrank.data.readers.letor import read_letor, sizes_beside
from gbmrank.data.readers.text import Limits, RankingFile, read_column
from gbmrank.data.readers.trec import read_trec

__all__ = [
    "Header",
    "Limits",
    "RankingFile",
    "read_column",
    "read_csv",
    "read_letor",
    "read_parquet",
    "read_trec",
    "sizes_beside",
    "table_format",
]
