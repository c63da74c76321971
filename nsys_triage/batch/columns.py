"""What a table of the batch is: columns as data, each with its type, its meaning and where its value comes from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nsys_triage.batch.plan import Job
from nsys_triage.result.model import Result
from nsys_triage.rules.verdict import Balance


@dataclass(frozen=True, slots=True)
class JobRow:
    """What a row of a table is made from: a job, its result, and a part of that where a job has several rows."""

    job: Job
    result: Result
    balance: Balance
    at_stake_ns: int
    part: Any = None  # Gpu, Finding, Step
    number: int = 0  # of the part


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Where `nullable` is False every row has a value."""

    name: str
    type: pa.DataType
    text: str
    value: Callable[[Any], Any]
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its file's name without suffix, what a row is, and its columns."""

    name: str
    row: str
    columns: Sequence[Column]

    @property
    def schema(self) -> pa.Schema:
        """The schema, with the meaning of each column in its metadata."""
        fields = [pa.field(c.name, c.type, c.nullable, {"description": c.text}) for c in self.columns]
        return pa.schema(fields, {"description": self.row})

    def batch(self, rows: Sequence[Any]) -> pa.RecordBatch:
        """Rows as Arrow."""
        arrays = [pa.array([column.value(row) for row in rows], column.type) for column in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def may(name: str, kind: pa.DataType, text: str, value: Callable[[Any], Any]) -> Column:
    """A column that may be null."""
    return Column(name, kind, text, value)


def must(name: str, kind: pa.DataType, text: str, value: Callable[[Any], Any]) -> Column:
    """A column that has a value in every row."""
    return Column(name, kind, text, value, nullable=False)
