import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsys_triage.metrics.gpu_samples import filled_samples, means_of, means_while, summarize_gpu_metrics
from nsys_triage.trace.model import GPU_METRICS


def samples(*rows: tuple[int, str, float], gpu_id: int = 0) -> pl.DataFrame:
    return pl.DataFrame(
        [(time, gpu_id, metric, value) for time, metric, value in rows], schema=GPU_METRICS, orient="row"
    )


def spans(*rows: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema={"start_ns": pl.Int64, "end_ns": pl.Int64}, orient="row")


def every_100(metric: str, *values: float, first: int = 0) -> list[tuple[int, str, float]]:
    return [(first + 100 * index, metric, value) for index, value in enumerate(values)]


def test_means_are_weighted_with_the_time_in_the_window() -> None:
    frame = samples(*every_100("sm_active", 0.2, 0.4, 0.9, 0.1))
    # [50, 100) of the first, all of the second, [200, 230) of the third
    found = summarize_gpu_metrics(frame, 0, 50, 230)
    assert found is not None
    assert found.sm_active_share == pytest.approx((50 * 0.2 + 100 * 0.4 + 30 * 0.9) / 180)
    assert found.samples == 3
    assert (found.tensor_active_share, found.dram_share, found.clock_mhz) == (None, None, None)


def test_a_sample_speaks_for_the_time_up_to_the_next_one() -> None:
    frame = samples(
        *((at, "sm_active", value) for at, value in ((0, 0.0), (100, 1.0), (220, 0.0), (320, 0.0)))
    )
    found = summarize_gpu_metrics(frame, 0, 0, 420)
    assert found is not None
    assert found.sm_active_share == pytest.approx(120 / 420)


def test_every_metric_of_the_result() -> None:
    frame = samples(
        *every_100("sm_active", 0.5, 0.7),
        *every_100("tensor_active", 0.1, 0.3),
        *every_100("dram_read", 0.5, 0.25),
        *every_100("dram_write", 0.25, 0.0),
        *every_100("gr_active", 1.0, 1.0),
        *every_100("sm_clock_mhz", 1_410.0, 1_155.0),
    )
    found = summarize_gpu_metrics(frame, 0, 0, 200)
    assert found is not None
    assert found.sm_active_share == pytest.approx(0.6)
    assert found.tensor_active_share == pytest.approx(0.2)
    assert found.dram_share == pytest.approx(0.5)
    assert found.clock_mhz is not None
    assert (found.clock_mhz.min, found.clock_mhz.p50, found.clock_mhz.max) == (1_155.0, 1_155.0, 1_410.0)


def test_shares_stay_within_all() -> None:
    frame = samples(*every_100("dram_read", 0.7, 0.7), *every_100("dram_write", 0.4, 0.4))
    found = summarize_gpu_metrics(frame, 0, 0, 200)
    assert found is not None
    assert found.dram_share == 1.0


def test_a_clock_of_zero_is_no_reading() -> None:
    found = summarize_gpu_metrics(
        samples(*every_100("sm_clock_mhz", 0.0, 900.0, 1_000.0, 1_100.0)), 0, 0, 400
    )
    assert found is not None
    assert found.clock_mhz is not None
    assert (found.clock_mhz.min, found.clock_mhz.p50, found.clock_mhz.max) == (900.0, 1_000.0, 1_100.0)
    asleep = summarize_gpu_metrics(samples(*every_100("sm_clock_mhz", 0.0, 0.0)), 0, 0, 200)
    assert asleep is not None
    assert asleep.clock_mhz is None


def test_lost_samples_are_not_made_up() -> None:
    # nothing from 300 to 1,000: the sample at 200 speaks for its own 100 ns
    frame = samples(*every_100("sm_active", 0.0, 0.0, 1.0), *every_100("sm_active", 0.0, 0.0, first=1_000))
    found = summarize_gpu_metrics(frame, 0, 0, 1_200)
    assert found is not None
    assert found.sm_active_share == pytest.approx(100 / 500)


def test_other_gpus_and_times_without_samples() -> None:
    frame = pl.concat(
        [samples(*every_100("sm_active", 0.2, 0.2)), samples(*every_100("sm_active", 0.8, 0.8), gpu_id=3)]
    )
    found = summarize_gpu_metrics(frame, 3, 0, 200)
    assert found is not None
    assert found.sm_active_share == pytest.approx(0.8)
    assert summarize_gpu_metrics(frame, 1, 0, 200) is None
    assert summarize_gpu_metrics(frame, 0, 5_000, 6_000) is None
    assert summarize_gpu_metrics(frame.clear(), 0, 0, 200) is None


def test_a_single_sample() -> None:
    found = summarize_gpu_metrics(samples((50, "sm_active", 0.3)), 0, 0, 100)
    assert found is not None
    assert found.sm_active_share == pytest.approx(0.3)
    assert summarize_gpu_metrics(samples((50, "sm_active", 0.3)), 0, 60, 100) is None


def test_idle_time_does_not_thin_out_what_kernels_do() -> None:
    frame = samples(*every_100("sm_active", 0.0, 0.8, 0.4, 0.0), *every_100("gr_active", 0.0, 1.0, 0.5, 0.0))
    # all of [100, 200), half of [200, 300); two kernels at a time count once
    found = means_while(frame, 0, spans((100, 250), (120, 180)))
    assert found == {
        "gr_active": pytest.approx((100 * 1.0 + 50 * 0.5) / 150),
        "sm_active": pytest.approx((100 * 0.8 + 50 * 0.4) / 150),
    }
    assert list(found) == ["gr_active", "sm_active"]
    assert means_while(frame, 0, spans()) == {}
    assert means_while(frame, 0, spans((5_000, 6_000))) == {}


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.integers(0, 500), st.integers(1, 2_000))
def test_a_mean_lies_between_its_samples(values: list[float], start: int, length: int) -> None:
    found = summarize_gpu_metrics(samples(*every_100("sm_active", *values)), 0, start, start + length)
    inside = [
        value
        for index, value in enumerate(values)
        if 100 * index < start + length and 100 * index + 100 > start
    ]
    assert (found is None) == (not inside)
    if found is not None:
        assert found.sm_active_share is not None
        assert min(inside) - 1e-9 <= found.sm_active_share <= max(inside) + 1e-9


def test_filled_samples_are_those_that_busy_time_fills() -> None:
    frame = samples(*every_100("sm_active", 0.2, 0.4, 0.9, 0.1))
    # all of the first period, 80 of the second, 79 of the third
    found = filled_samples(frame, 0, spans((0, 180), (221, 300)))
    assert found.rows() == [(0, "sm_active", 0.2, 100), (100, "sm_active", 0.4, 80)]
    assert means_of(found) == {"sm_active": pytest.approx((100 * 0.2 + 80 * 0.4) / 180)}
    assert filled_samples(frame, 0, spans((0, 180), (221, 300)), least=0.79).height == 3


def test_filled_samples_of_another_gpu_or_without_busy_time() -> None:
    frame = samples(*every_100("sm_active", 0.2, 0.4))
    assert filled_samples(frame, 1, spans((0, 200))).is_empty()
    assert filled_samples(frame, 0, spans()).is_empty()
    assert means_of(filled_samples(frame, 0, spans())) == {}
