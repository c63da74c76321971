"""NVTX rows: ranges, their domains, texts and payloads, and the host's MPI calls where they are NVTX ranges.

Names are inline texts or ids of `StringIds`; domains are numbered per process and named by rows of their own;
ranges that were open when the capture ended have no end or exactly the capture's (sections 3 and 7 of the
schema reference).
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.trace import model
from nsys_triage.trace.clean import Clock, drop_bad_ranges
from nsys_triage.trace.events import process_id, thread_id
from nsys_triage.trace.read import Database, Narrow, Piece
from nsys_triage.trace.strings import UNKNOWN, OwnTexts, decoded, read_strings

MARK: Final = 34
PUSH_POP: Final = 59
START_END: Final = 60
DOMAIN: Final = 75
_RANGES: Final = (PUSH_POP, START_END)
_MPI: Final = "MPI"
_NCCL: Final = "NCCL"


@dataclass(frozen=True, slots=True)
class Ranges:
    """What NVTX rows hold: ranges (`model.NVTX`) and MPI calls (`model.HOST_COMMUNICATION`), and counts."""

    ranges: pl.DataFrame
    mpi_calls: pl.DataFrame
    texts: pl.DataFrame  # `model.STRINGS` of the texts that the rows carried themselves
    range_count: int
    point_count: int
    open_count: int


def text_categories() -> pl.Categorical:
    """A type in which repeated inline texts take four bytes each; one for each trace that is read."""
    return pl.Categorical(pl.Categories.random(namespace="nvtx"))


def narrow_nvtx(clock: Clock, texts: pl.Categorical) -> Narrow:
    """For rows of NVTX_EVENTS; what is not needed of marks and domains is kept until the names are known."""

    def narrow(batch: pl.DataFrame) -> Piece:
        good, dropped = drop_bad_ranges(batch, clock)
        end = pl.when(~clock.zero("end")).then(clock.relative("end"))
        rows = good.select(
            clock.relative("start").alias("start_ns"),
            end.alias("end_ns"),
            process_id("global_tid").alias("pid"),
            thread_id("global_tid").alias("tid"),
            pl.col("kind").cast(pl.UInt8, strict=False),
            pl.col("domain_id").fill_null(0).cast(pl.UInt32, strict=False),
            pl.col("name_id").cast(pl.UInt32, strict=False),
            pl.col("payload_id").cast(pl.UInt32, strict=False),
            decoded(good["text"]).cast(texts).alias("text"),
            decoded(good["payload_text"]).cast(texts).alias("payload_text"),
        )
        return Piece(rows, batch.height, dropped)

    return narrow


def finish(
    piece: Piece, database: Database, codes: pl.Series, duration_ns: int | None, last_ns: int
) -> Ranges:
    """Ranges and MPI calls of the narrowed rows.

    `codes` are the string codes that other frames use: new ones lie above them. Where the length of the
    capture is not known, open ranges end at `last_ns`, the end of its last event.
    """
    rows = piece.frame
    is_range = rows["kind"].is_in(_RANGES)
    ranges = rows if is_range.all() else rows.filter(is_range)
    domains = _used_domains(ranges, _domains(rows.filter(pl.col("kind") == DOMAIN), database))
    known = pl.concat(
        [codes, *(ranges[column].drop_nulls().unique() for column in ("name_id", "payload_id"))]
    )
    texts = OwnTexts.number(_own_texts(ranges, domains), known)
    ranges = _named(ranges, domains, texts)
    open_range = pl.col("end_ns").is_null() | (pl.col("end_ns") == (duration_ns or -1))
    end_of_capture = pl.max_horizontal("start_ns", pl.lit(duration_ns or last_ns))
    ranges = ranges.with_columns(
        open=open_range, end_ns=pl.when(open_range).then(end_of_capture).otherwise("end_ns")
    )
    has_mpi = bool(domains["mpi"].any())
    calls = ranges.filter(pl.col("mpi") & (pl.col("kind") == PUSH_POP))
    return Ranges(
        ranges=(ranges.filter(~pl.col("mpi")) if has_mpi else ranges).select(list(model.NVTX)),
        mpi_calls=calls.select(list(model.HOST_COMMUNICATION)),
        texts=texts.strings,
        range_count=ranges.height + sum(piece.dropped.values()),
        point_count=int((rows["kind"] == MARK).sum()),
        open_count=int(ranges["open"].sum()),
    )


def _domains(rows: pl.DataFrame, database: Database) -> pl.DataFrame:
    """The name of each domain of each process that a row names, of the type of inline texts."""
    registered = read_strings(database, rows["name_id"].drop_nulls().unique().sort()).select(
        pl.col("code"), pl.col("text").cast(rows.schema["text"]).alias("registered")
    )
    return (
        rows.join(registered, left_on="name_id", right_on="code", how="left", maintain_order="left")
        .select("pid", "domain_id", pl.coalesce("registered", "text").alias("domain_name"))
        .unique(["pid", "domain_id"], keep="first", maintain_order=True)
    )


def _used_domains(ranges: pl.DataFrame, domains: pl.DataFrame) -> pl.DataFrame:
    """Domains that have ranges, but the default one: process, id, name, whether it is MPI's or NCCL's."""
    unknown = pl.lit(UNKNOWN).cast(ranges.schema["text"])
    name = pl.col("domain_name").cast(pl.String)
    return (
        ranges.select("pid", "domain_id")
        .unique()
        .filter(pl.col("domain_id") != 0)
        .join(domains, on=["pid", "domain_id"], how="left", nulls_equal=True)
        .with_columns(pl.col("domain_name").fill_null(unknown))
        .with_columns(mpi=name == _MPI, nccl=name == _NCCL)
        .sort("pid", "domain_id")
    )


def _own_texts(ranges: pl.DataFrame, domains: pl.DataFrame) -> list[pl.Series]:
    """The texts that rows carry and the frames will use: inline names, names of domains, NCCL payloads."""
    payloads = (
        ranges.select("pid", "domain_id", "payload_text")
        .unique(maintain_order=True)
        .join(
            domains.filter("nccl"),
            on=["pid", "domain_id"],
            how="semi",
            nulls_equal=True,
            maintain_order="left",
        )
        .filter(pl.col("payload_text").cast(pl.String) != "")
    )
    inline = ranges.filter(pl.col("name_id").is_null())["text"]
    return [inline, domains["domain_name"], payloads["payload_text"]]


def _named(ranges: pl.DataFrame, domains: pl.DataFrame, texts: OwnTexts) -> pl.DataFrame:
    """Ranges with the codes of their names, domains and payloads, and whether the domain is MPI's."""
    missing = pl.lit(None, dtype=pl.UInt32)
    kept = ["start_ns", "end_ns", "pid", "tid", "kind"]
    name = pl.coalesce("name_id", texts.codes(ranges["text"])).alias("name")
    if domains.is_empty():
        return ranges.select(
            *kept, name, missing.alias("domain"), missing.alias("payload"), mpi=pl.lit(False)
        )
    payload = pl.coalesce("payload_id", texts.codes(ranges["payload_text"])).alias("payload")
    coded = domains.select("pid", "domain_id", "mpi", "nccl", domain=texts.codes(domains["domain_name"]))
    return (
        ranges.select(*kept, "domain_id", name, payload)
        .join(coded, on=["pid", "domain_id"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(pl.when("nccl").then("payload").alias("payload"), pl.col("mpi").fill_null(False))
        .drop("domain_id", "nccl")
    )
