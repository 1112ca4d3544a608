"""Files of predictions in and out, block by block: CSV, Parquet and NumPy arrays. Needs pyarrow (extra ``cli``)."""

from calibrant._tables.columns import Request
from calibrant._tables.labels import LabelRule, label_rule
from calibrant._tables.sources import Block, Source, open_source
from calibrant._tables.writers import open_writer

__all__ = ["Block", "LabelRule", "Request", "Source", "label_rule", "open_source", "open_writer"]
