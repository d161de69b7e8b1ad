"""Files to arrays: LETOR text, CSV and Parquet tables, TREC qrels and runs."""

from gbmrank.readers.header import Columns
from gbmrank.readers.letor import read_letor
from gbmrank.readers.ranking_file import RankingFile
from gbmrank.readers.table import read_csv, read_parquet, table_format
from gbmrank.readers.text import Limits, read_column
from gbmrank.readers.trec import read_trec

__all__ = [
    "Columns",
    "Limits",
    "RankingFile",
    "read_column",
    "read_csv",
    "read_letor",
    "read_parquet",
    "read_trec",
    "table_format",
]
