"""Files to arrays: LETOR text, CSV and Parquet tables, TREC qrels and runs."""

from gbmrank.data.readers.frames import Header, read_csv, read_parquet, table_format
from gbmrank.data.readers.letor import read_letor
from gbmrank.data.readers.rows import FORMATS, ROW_FORMATS, FileOptions, guess_format, read_rows
from gbmrank.data.readers.text import Limits, RankingFile, read_column
from gbmrank.data.readers.trec import read_trec

__all__ = [
    "FORMATS",
    "ROW_FORMATS",
    "FileOptions",
    "Header",
    "Limits",
    "RankingFile",
    "guess_format",
    "read_column",
    "read_csv",
    "read_letor",
    "read_parquet",
    "read_rows",
    "read_trec",
    "table_format",
]
