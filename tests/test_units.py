"""Text of numbers: sane at every magnitude, a unit always, nothing that is not nothing printed as zero."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsys_triage import units

NUMBER = re.compile(r"-?\d{1,3}( \d{3})*(\.\d+)?")


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (0.004, "0.004 ns"),
        (999, "999 ns"),
        (999.6, "1 us"),
        (6_800, "6.8 us"),
        (9_995, "10 us"),
        (24_900_000, "24.9 ms"),
        (99_951_000, "100 ms"),
        (999_960_000, "1 s"),
        (1_600_000_000, "1.6 s"),
        (123_456_000_000_000, "123 456 s"),
        (-2_500, "-2.5 us"),
    ],
)
def test_time(ns: float, text: str) -> None:
    assert units.time(ns) == text


@given(st.integers(min_value=-(10**18), max_value=10**18))
def test_a_time_is_never_off_by_more_than_its_digits_say(ns: int) -> None:
    text = units.time(ns)
    number, unit = text.rsplit(" ", 1)
    assert NUMBER.fullmatch(number)
    value = float(number.replace(" ", "")) * {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}[unit]
    assert abs(value - ns) <= 0.05 * abs(ns)
    assert (value == 0) == (ns == 0)


@given(st.floats(min_value=1e-9, max_value=1e20))
def test_what_is_not_nothing_is_not_printed_as_zero(value: float) -> None:
    for text in (
        units.time(value),
        units.size(value),
        units.rate(value),
        units.per_second(value),
        units.ratio(value),
    ):
        assert re.search(r"[1-9]", text)
        assert "e" not in text.replace("per s", "")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (400_000_000, 9_500_000_000, "0.4 to 9.5 s"),
        (24_000_000, 1_600_000_000, "24 ms to 1.6 s"),
        (0, 9_500_000_000, "up to 9.5 s"),
        (9_510_000_000, 9_520_000_000, "9.5 s"),
        (0, 0, "0 ns"),
        (300, 900, "300 to 900 ns"),
    ],
)
def test_a_range_of_times_has_one_unit_where_that_reads_well(low: int, high: int, text: str) -> None:
    assert units.times(low, high) == text


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (12_403_000_000, 12_617_000_000, "12.403 to 12.617 s"),
        (12_403_400_000, 12_616_600_000, "12.403 to 12.617 s"),
        (1_000_000_000, 1_000_012_000, "1.000000 to 1.000012 s"),
        (5, 9, "0.000000005 to 0.000000009 s"),
        (-5_000_000, 7_000_000_000, "-0.005 to 7.000 s"),
        (-400_000, 3_000_000_000, "0.000 to 3.000 s"),
        (7, 7, "0.000000007 to 0.000000007 s"),
    ],
)
def test_a_stretch_has_the_decimals_that_tell_its_ends_apart(start: int, end: int, text: str) -> None:
    assert units.stretch(start, end) == text


@given(st.integers(-(10**15), 10**15), st.integers(min_value=1, max_value=10**13))
def test_the_ends_of_a_stretch_differ(start: int, length: int) -> None:
    first, last = units.stretch(start, start + length).removesuffix(" s").split(" to ")
    assert first != last


def test_moment_rounds_without_a_float() -> None:
    assert units.moment(1_234_567_890) == "1.234568 s"
    assert units.moment(9_007_199_254_740_993_000) == "9007199254.740993 s"
    assert units.moment(-1) == "0.000000 s"
    assert units.moment(14_500_000_000, 3) == "14.500 s"


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0, "0 %"),
        (1e-9, "< 0.1 %"),
        (0.0009, "< 0.1 %"),
        (0.001, "0.1 %"),
        (0.04, "4.0 %"),
        (0.0995, "10 %"),
        (0.943, "94 %"),
        (0.9899, "99 %"),
        (0.993, "99.3 %"),
        (0.9996, "99.9 %"),
        (1, "100 %"),
        (1.2, "100 %"),
        (-1, "0 %"),
    ],
)
def test_share(fraction: float, text: str) -> None:
    assert units.share(fraction) == text


def test_sizes_rates_counts_and_clocks() -> None:
    assert units.size(3_100_000) == "3.1 MB"
    assert units.size(4) == "4 B"
    assert units.size(2.5e15) == "2 500 TB"
    assert units.rate(1.9e9) == "1.9 GB/s"
    assert units.count(9_345) == "9 345"
    assert units.count(1.4) == "1.4"
    assert units.frequency(1_410.4) == "1 410 MHz"
    assert units.per_second(12_400.0) == "12 400 per s"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 1_000, "under 1 us"),
        (10_000, 30_000, "10 to 30 us"),
        (300_000, 1_000_000, "300 us to 1 ms"),
        (100_000_000_000, None, "100 s and more"),
    ],
)
def test_buckets(low: int, high: int | None, text: str) -> None:
    assert units.time_bucket(low, high) == text


def test_size_buckets() -> None:
    assert units.size_bucket(10_000, 100_000) == "10 to 100 kB"
    assert units.size_bucket(0, 1_000) == "under 1 kB"
    assert units.size_bucket(4_096, 16_384) == "4 to 16 KiB"
    assert units.size_bucket(64, 1_024) == "64 B to 1 KiB"
    assert units.size_bucket(1 << 30, None) == "1 GiB and more"
    assert units.size_bucket(0, 64) == "under 64 B"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (9_524_000_000, "ns", "9.5 s"),
        (3_100_000, "bytes", "3.1 MB"),
        (11.2e9, "bytes_per_s", "11.2 GB/s"),
        (78, "count", "78"),
        (0.97, "share", "97 %"),
        (1_410, "mhz", "1 410 MHz"),
        ("poll", "text", "poll"),
        (3, "text", "3"),
    ],
)
def test_a_quantity_of_the_result(value: float | str, unit: str, text: str) -> None:
    assert units.quantity(value, unit) == text


def test_a_quantity_in_another_unit_is_an_error() -> None:
    with pytest.raises(ValueError, match="furlong"):
        units.quantity(1, "furlong")


def test_plural() -> None:
    assert units.plural(1, "gap") == "1 gap"
    assert units.plural(9_345, "gap") == "9 345 gaps"
    assert units.plural(0, "process", "processes") == "0 processes"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 GPU-s"),
        (8_500_000_000, "8.5 GPU-s"),
        (31 * 60 * 10**9, "31 GPU-min"),
        (15_120 * 10**9, "4.2 GPU-h"),
    ],
)
def test_gpu_time(ns: int, text: str) -> None:
    assert units.gpu_time(ns) == text
