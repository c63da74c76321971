"""The texts that the frames use: one code for each, those of the export and those written into rows.

`StringIds` can have millions of rows; only codes that occur are read. Texts that NVTX rows carry themselves,
names of NVTX domains and payloads get codes above the largest that occurs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.trace import model, versions
from nsys_triage.trace.read import Database

UNKNOWN: Final = "[unknown]"  # a code whose text is not in the export
_CODES_PER_QUERY: Final = 20_000


def decoded(values: pl.Series) -> pl.Series:
    """Bytes as text; what is no UTF-8 becomes U+FFFD."""
    try:
        return values.cast(pl.String)
    except pl.exceptions.ComputeError:
        different = values.unique().drop_nulls().to_list()
        texts = [value.decode("utf-8", "replace") for value in different]
        return values.replace_strict(different, texts, default=None, return_dtype=pl.String)


def used_codes(frames: Iterable[pl.Series]) -> pl.Series:
    """The distinct codes of all columns, ascending."""
    columns = [column.drop_nulls().unique() for column in frames]
    return pl.concat([pl.Series("code", [], dtype=pl.UInt32), *columns]).unique().sort()


def read_strings(database: Database, codes: pl.Series) -> pl.DataFrame:
    """The texts of those codes (`model.STRINGS`), ascending; `[unknown]` where the export has none."""
    resolved = database.resolve(versions.STRINGS)
    found = model.empty(model.STRINGS)
    if resolved is not None:
        column = resolved.integers["code"]
        parts = [
            database.frame(resolved, f'"{column}" IN ({",".join(map(str, some.to_list()))})')
            for some in _slices(codes, _CODES_PER_QUERY)
        ]
        if parts:
            rows = pl.concat(parts)
            found = rows.select(pl.col("code").cast(pl.UInt32), decoded(rows["text"]).alias("text"))
    return (
        codes.to_frame("code")
        .join(found.unique("code", keep="first", maintain_order=True), on="code", how="left")
        .with_columns(pl.col("text").fill_null(UNKNOWN))
        .sort("code")
    )


@dataclass(frozen=True, slots=True)
class OwnTexts:
    """Texts that rows carry themselves, with new codes."""

    strings: pl.DataFrame  # `model.STRINGS`
    by_category: pl.Series  # the code of each category of their categorical type; null where it has none

    @classmethod
    def number(cls, texts: Sequence[pl.Series], codes: pl.Series) -> "OwnTexts":
        """Codes above the largest of `codes` for all texts of one categorical type, in order of occurrence."""
        # categories are numbered as threads meet them, rows have one order: codes are repeatable
        distinct = (
            pl.concat([series.rename("text") for series in texts]).drop_nulls().unique(maintain_order=True)
        )
        largest = codes.max()
        first = (largest if isinstance(largest, int) else 0) + 1
        numbers = pl.int_range(first, first + distinct.len(), eager=True).cast(pl.UInt32)
        at = distinct.to_physical()
        last = at.max()
        every = pl.repeat(None, (last if isinstance(last, int) else -1) + 1, dtype=pl.UInt32, eager=True)
        strings = pl.DataFrame({"code": numbers, "text": distinct.cast(pl.String)}, schema=model.STRINGS)
        return cls(strings, every.scatter(at, numbers))

    def codes(self, column: pl.Series) -> pl.Series:
        """The code of each value of a column of that type; null where it is no text of these."""
        at = column.to_physical()
        inside = pl.select(pl.when(at < self.by_category.len()).then(at)).to_series()
        return self.by_category.gather(inside).alias(column.name)


def _slices(values: pl.Series, length: int) -> list[pl.Series]:
    return [values.slice(at, length) for at in range(0, values.len(), length)]
