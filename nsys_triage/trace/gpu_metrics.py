"""Sampled hardware metrics of GPUs, the few that tell how well a busy GPU is used.

Since 2023.4.4 a long table by metric id; before, JSON rows with the metrics' names as keys. Names differ
between metric sets and versions (`versions.METRIC_NAMES`). A sample has about twenty metrics: SQL chooses.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

import polars as pl

from nsys_triage.trace import model, versions
from nsys_triage.trace.clean import Clock
from nsys_triage.trace.read import Database, Piece, Resolved, Task, quoted

_NAME: Final = re.compile(r"\s*(.*?)\s*(?:\[([^\]]*)\])?\s*")
_CLOCK: Final = "sm_clock_mhz"
_HZ_PER_MHZ: Final = 1_000_000
_UNSIGNED: Final = 0xFFFFFFFF  # values wrap at 32 bits: clocks above 2.147 GHz are written as negative
_METRICS: Final = pl.Enum(sorted(set(versions.METRIC_NAMES.values())))
# a value as sampled: `part` tells apart the sources of one metric that are to be added
_RAW: Final[model.Schema] = {
    "start": pl.Int64,
    "type_id": pl.Int64,
    "metric": _METRICS,
    "part": pl.Boolean,
    "value": pl.Float64,
}


def metric(name: str) -> str | None:
    """Metric that a name of any metric set stands for; None for those that are not read.

    Percentages alone: newer sets give some metrics in several units, as `[Throughput %]` and `[Avg]`.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    found = versions.METRIC_NAMES.get(" ".join(match[1].lower().split()))
    unit = (match[2] or "").lower()
    fits = unit in ("", "mhz", "hz") if found == _CLOCK else not unit or "%" in unit
    return found if fits else None


def read_gpu_metrics(database: Database, clock: Clock) -> pl.DataFrame | None:
    """Read the samples of all GPUs (`model.GPU_METRICS`); None where none were recorded."""
    table, names = database.resolve(versions.GPU_METRICS), database.rows(versions.GPU_METRIC_NAMES)
    if table is not None and names:
        wanted = [
            (row["type_id"], row["metric_id"], found) for row in names if (found := metric(row["name"]))
        ]
        return _finished(_read_long(database, table, wanted), clock)
    generic = database.resolve(versions.GENERIC_EVENTS)
    keys = _json_keys(database, generic) if generic is not None else {}
    if generic is None or not keys:
        return None if table is None else model.empty(model.GPU_METRICS)
    return _finished(_read_json(database, generic, keys), clock)


def _read_long(database: Database, table: Resolved, wanted: Sequence[tuple[int, int, str]]) -> pl.DataFrame:
    if not wanted:
        return model.empty(_RAW)
    schema: model.Schema = {"type_id": pl.Int64, "metric_id": pl.Int64, "metric": _METRICS}
    names = pl.DataFrame(wanted, schema=schema, orient="row").with_columns(
        part=pl.len().over("type_id", "metric") > 1
    )
    type_column, metric_column, value_column = (
        quoted(name or "")
        for name in (table.integers["type_id"], table.integers["metric_id"], table.reals["value"])
    )
    conditions = []
    for type_id in sorted({type_id for type_id, _, _ in wanted}):
        ids = ",".join(str(metric_id) for one, metric_id, _ in wanted if one == type_id)
        conditions.append(f"{type_column} = {type_id} AND {metric_column} IN ({ids})")

    def narrow(batch: pl.DataFrame) -> Piece:
        rows = batch.join(names, on=["type_id", "metric_id"], how="inner", maintain_order="left")
        timed = rows.with_columns(start=pl.coalesce("start", "raw_start"))
        return Piece(timed.select(list(_RAW)), batch.height)

    condition = f"({' OR '.join(conditions)}) AND {value_column} IS NOT NULL"
    return database.read([Task(table, narrow, condition)])[0].frame


def _json_keys(database: Database, table: Resolved) -> dict[int, dict[str, str]]:
    """JSON keys that are metrics, by type of event, as the first row of each type has them."""
    type_column = quoted(table.integers["type_id"] or "")
    table_name = quoted(table.table)
    sql = f"SELECT min(_rowid_) AS first FROM {table_name} GROUP BY {type_column}"  # noqa: S608 (quoted)
    firsts = database.query(sql)["first"].to_list()
    keys: dict[int, dict[str, str]] = {}
    for row in database.rows(versions.GENERIC_EVENTS, f"_rowid_ IN ({','.join(map(str, firsts))})"):
        try:
            fields = json.loads(row["data"])
        except ValueError:
            continue
        found = {key: name for key in fields if (name := metric(key))} if isinstance(fields, dict) else {}
        if found:
            keys[row["type_id"]] = found
    return keys


def _read_json(database: Database, table: Resolved, keys: dict[int, dict[str, str]]) -> pl.DataFrame:
    """Wanted values of all JSON rows. An event's time is `rawTimestamp` where `timestamp` is NULL."""
    type_column, data = quoted(table.integers["type_id"] or ""), quoted(table.texts["data"] or "")
    times = [quoted(name) for name in (table.integers["start"], table.integers["raw_start"]) if name]
    start = f"coalesce({', '.join([*times, 'NULL'])})"
    parts = [model.empty(_RAW)]
    for type_id, metrics in sorted(keys.items()):
        # no real metric is infinite: stands for a value that a row lacks, since the driver wants one type
        values = ", ".join(
            f"ifnull(CAST(json_extract({data}, {_json_path(key)}) AS REAL), 9e999) AS {quoted(key)}"
            for key in metrics
        )
        frame = database.query(
            f"SELECT {start} AS start, {values} FROM {quoted(table.table)}"  # noqa: S608 (quoted names)
            f" WHERE {type_column} = {int(type_id)} AND json_valid({data})"
        )
        several = {key: list(metrics.values()).count(name) > 1 for key, name in metrics.items()}
        key = pl.col("key")
        parts.append(
            frame.unpivot(on=list(metrics), index="start", variable_name="key", value_name="value")
            .filter(pl.col("value").is_finite())
            .select(
                pl.col("start").cast(pl.Int64),
                pl.lit(type_id, dtype=pl.Int64).alias("type_id"),
                key.replace_strict(metrics, return_dtype=_METRICS).alias("metric"),
                key.replace_strict(several, return_dtype=pl.Boolean).alias("part"),
                pl.col("value").cast(pl.Float64),
            )
        )
    return pl.concat(parts)


def _json_path(key: str) -> str:
    path = '$."' + key.replace('"', "") + '"'
    return "'" + path.replace("'", "''") + "'"


def _finished(raw: pl.DataFrame, clock: Clock) -> pl.DataFrame:
    """Shares and MHz on the capture's clock; parts of one metric added; what is no percentage left out.

    A GPU's first sample is left out where it lies before the capture began: it covers no whole period.
    """
    is_clock = pl.col("metric") == _CLOCK
    hz = pl.col("value").cast(pl.Int64) & _UNSIGNED  # also where the name says [MHz]
    samples = raw.filter(
        pl.col("start").is_not_null() & (is_clock | pl.col("value").is_between(0, 100))
    ).select(
        clock.relative("start").alias("time_ns"),
        (pl.col("type_id") & 0xFF).cast(pl.Int32).alias("gpu_id"),
        "metric",
        pl.when(is_clock).then(hz / _HZ_PER_MHZ).otherwise("value").alias("value"),
        "part",
    )
    added = (
        samples.filter("part")
        .group_by("gpu_id", "metric", "time_ns")
        .agg(pl.col("value").sum().clip(upper_bound=100.0))
        .sort("gpu_id", "metric", "time_ns")
    )
    columns = list(model.GPU_METRICS)
    every = pl.concat([samples.filter(~pl.col("part")).select(columns), added.select(columns)])
    firsts = every.group_by("gpu_id").agg(pl.col("time_ns").min().alias("first"))
    early = firsts.filter(pl.col("first") < 0).rename({"first": "time_ns"})
    kept = (
        every
        if early.is_empty()
        else every.join(early, on=["gpu_id", "time_ns"], how="anti", maintain_order="left")
    )
    # divided after the addition, since sums of whole numbers do not depend on their order
    share = pl.when(is_clock).then("value").otherwise(pl.col("value") / 100)
    return kept.with_columns(value=share, metric=pl.col("metric").cast(pl.String))
