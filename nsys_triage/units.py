"""The only place that turns a number into text for a person.

Three significant digits at most, a unit always: `4.1 s`, `94 %`, `6.8 us`, `1.9 GB/s`. What is not
nothing is never printed as zero.
"""

import math

Steps = tuple[tuple[int, str], ...]

_TIME_STEPS: Steps = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))
_GPU_TIME_STEPS: Steps = ((3_600_000_000_000, "GPU-h"), (60_000_000_000, "GPU-min"), (1_000_000_000, "GPU-s"))
_BYTE_STEPS: Steps = (
    (1_000_000_000_000, "TB"),
    (1_000_000_000, "GB"),
    (1_000_000, "MB"),
    (1_000, "kB"),
    (1, "B"),
)
_BINARY_STEPS: Steps = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def _grouped(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ")


def _digits(value: float) -> str:
    """Up to three significant digits, without an exponent; no trailing zeros after the point."""
    size = abs(value)
    if size >= 99.95:
        return _grouped(value)
    if size >= 0.995:
        text = f"{value:.1f}"
    elif size > 0:
        # two digits, wherever they begin: 0.42, 0.0042
        text = f"{value:.{1 - math.floor(math.log10(size))}f}"
    else:
        return "0"
    return text.rstrip("0").rstrip(".")


def _step(value: float, steps: Steps) -> tuple[int, str]:
    """The factor and the unit that `value` is printed in: 999.96 ms reads as 1 s, not as 1 000 ms."""
    for factor, unit in steps[:-1]:
        if abs(value) >= factor * 0.9995:
            return factor, unit
    return steps[-1]


def _scaled(value: float, steps: Steps) -> str:
    factor, unit = _step(value, steps)
    return f"{_digits(value / factor)} {unit}"


def time(ns: int | float) -> str:
    """Nanoseconds as text: `1.6 s`, `24.9 ms`, `6.8 us`, `0 ns`."""
    return _scaled(ns, _TIME_STEPS)


def gpu_time(ns: int | float) -> str:
    """Time of GPUs summed over many: `12 400 GPU-h`, `4.2 GPU-h`, `31 GPU-min`, `8.5 GPU-s`, `0.42 GPU-s`."""
    factor, unit = _step(ns, _GPU_TIME_STEPS)
    return f"{_digits(ns / factor)} {unit}"


def times(low_ns: int | float, high_ns: int | float) -> str:
    """A range of durations: `0.4 to 9.5 s`, `24 ms to 1.6 s`, `up to 9.5 s`, `9.5 s` if they read alike."""
    low, high = time(low_ns), time(high_ns)
    if low == high:
        return high
    if low_ns <= 0:
        return f"up to {high}"
    factor, unit = _step(high_ns, _TIME_STEPS)
    if low_ns / factor >= 0.1:
        return f"{_digits(low_ns / factor)} to {_digits(high_ns / factor)} {unit}"
    return f"{low} to {high}"


def moment(ns: int, decimals: int = 6) -> str:
    """A moment on the capture's clock, as the Nsight Systems window shows it: `12.403000 s`."""
    return f"{_seconds(ns, decimals)} s"


def stretch(start_ns: int, end_ns: int) -> str:
    """A stretch on the capture's clock: `12.403 to 12.617 s`, with as many decimals as tell its ends apart.

    At least milliseconds, and at least two digits of the length where it is shorter.
    """
    length = max(1, end_ns - start_ns)
    decimals = min(9, max(3, 10 - math.floor(math.log10(length))))
    return f"{_seconds(start_ns, decimals)} to {_seconds(end_ns, decimals)} s"


def _seconds(ns: int, decimals: int) -> str:
    """Seconds by integer arithmetic, rounded half up, since a float loses nanoseconds after some days."""
    unit = 10 ** (9 - decimals)
    rounded = (abs(ns) + unit // 2) // unit
    whole, part = divmod(rounded, 10**decimals)
    return f"{'-' if ns < 0 and rounded else ''}{whole}.{part:0{decimals}d}"


def size(count: int | float) -> str:
    """Bytes as text, in powers of ten: `3.1 MB`."""
    return _scaled(count, _BYTE_STEPS)


def rate(bytes_per_s: float) -> str:
    """Bytes per second as text: `1.9 GB/s`."""
    return f"{size(bytes_per_s)}/s"


def share(fraction: float) -> str:
    """A share (0..1) as percent: `94 %`, `4.0 %`, `0.3 %`; at most 100 %; `0 %` for nothing alone."""
    percent = min(100.0, max(0.0, 100 * fraction))
    if percent == 0:
        return "0 %"
    if percent < 0.1:
        return "< 0.1 %"
    if percent < 9.95:
        return f"{percent:.1f} %"
    if 99 <= percent < 100:
        # what is missing matters on a nearly full GPU: 99.96 is not 100
        return f"{min(percent, 99.9):.1f} %"
    return f"{percent:.0f} %"


def count(number: int | float) -> str:
    """A count with its thousands apart: `9 345`."""
    return _grouped(number) if float(number).is_integer() else _digits(float(number))


def frequency(mhz: float) -> str:
    """A clock in MHz: `1 410 MHz`."""
    return f"{count(round(mhz))} MHz"


def per_second(number: float) -> str:
    """How often something happens: `12 400 per s`."""
    return f"{_digits(number)} per s"


def ratio(number: float) -> str:
    """A plain ratio: `2.4`, `0.08`."""
    return _digits(number)


def quantity(value: int | float | str, unit: str) -> str:
    """A value of the result in its unit: `ns`, `bytes`, `bytes_per_s`, `count`, `share`, `mhz` or `text`.

    Text stays as it is, whatever the unit says. Raises `ValueError` for another unit.
    """
    if isinstance(value, str):
        return value
    forms = {
        "ns": time, "bytes": size, "bytes_per_s": rate, "count": count, "share": share, "mhz": frequency,
        "text": count,
    }  # fmt: skip
    if unit not in forms:
        raise ValueError(f"no text form for the unit {unit!r}")
    return forms[unit](value)


def time_bucket(from_ns: int, to_ns: int | None) -> str:
    """A bucket of durations, both ends in one unit: `10 to 30 us`, `under 1 us`, `100 s and more`."""
    return _bucket(from_ns, to_ns, _TIME_STEPS)


def size_bucket(from_bytes: int, to_bytes: int | None) -> str:
    """A bucket of sizes: `10 to 100 kB`, `1 GB and more`; `4 to 16 KiB` where its ends are powers of two."""
    ends = [end for end in (from_bytes, to_bytes) if end]
    binary = any(end >= 1024 for end in ends) and all(end & (end - 1) == 0 for end in ends)
    return _bucket(from_bytes, to_bytes, _BINARY_STEPS if binary else _BYTE_STEPS)


def _bucket(low: int, high: int | None, steps: Steps) -> str:
    if high is None:
        return f"{_scaled(low, steps)} and more"
    if low <= 0:
        return f"under {_scaled(high, steps)}"
    if _step(low, steps) == _step(high, steps):
        factor, unit = _step(high, steps)
        return f"{_digits(low / factor)} to {_digits(high / factor)} {unit}"
    return f"{_scaled(low, steps)} to {_scaled(high, steps)}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """A count with its noun: `1 gap`, `9 345 gaps`, `2 classes` from `plural(2, "class", "classes")`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"
