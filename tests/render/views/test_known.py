from msgspec import UNSET
from msgspec.structs import replace

from nsys_triage.render.views import known
from nsys_triage.result.model import Excluded, Window
from tests.render import blocks, results
from tests.render.blocks import S, gpu


def test_absent_and_null_are_none() -> None:
    assert known.given(UNSET) is None
    assert known.given(None) is None
    assert known.given(0) == 0


def test_gpus_are_counted_by_model() -> None:
    h100, unnamed = replace(gpu(0), name="NVIDIA H100"), replace(gpu(1), name=None)
    assert known.gpus_line(results.baseline(gpus=[h100, h100, gpu(2)])) == "2 x H100; A100-SXM4-80GB"
    assert known.gpus_line(results.baseline(gpus=[unnamed])) == "1 GPU, model not recorded"
    assert known.gpus_line(results.cannot_judge()) == ""


def test_gpus_are_named_in_order_with_their_ranks() -> None:
    named = known.gpu_names(results.baseline(gpus=[gpu(7), replace(gpu(9), rank=3)]))
    assert named == {"gpu7": "GPU 0", "gpu9": "GPU 1 (rank 3)"}


def test_versions_are_both_named_where_they_differ() -> None:
    def line(recorded: str | None, exported: str | None) -> str | None:
        capture = blocks.capture(capture_version=recorded, exporter_version=exported)
        return known.versions_line(results.baseline(capture=capture))

    assert line("2022.2.1", "2023.4.4") == "recorded with nsys 2022.2.1, exported with 2023.4.4"
    assert line("2024.6.2", "2024.6.2") == "recorded with nsys 2024.6.2"
    assert line(None, "2024.6.2") == "exported with nsys 2024.6.2"
    assert line(None, None) is None


def test_the_window_says_what_it_is() -> None:
    def line(**window: object) -> str | None:
        plain = Window(start_ns=4 * S, end_ns=14 * S, mode="auto", excluded=[])
        capture = blocks.capture(window=replace(plain, **window))
        return known.window_line(results.baseline(capture=capture, steps=UNSET))

    cut = [Excluded(start_ns=0, end_ns=4 * S, reason="2 slow first steps")]
    assert line() == "whole capture: 4.000 to 14.000 s"
    assert line(excluded=cut) == "steady state: 4.000 to 14.000 s"
    assert line(mode="user") == "chosen window: 4.000 to 14.000 s"
    assert line(mode="nvtx", name="decode") == "NVTX range decode: 4.000 to 14.000 s"
    assert line(mode="nvtx") == "NVTX range: 4.000 to 14.000 s"


def test_ranks_go_before_processes() -> None:
    assert known.processes_line(results.rich()) == "2 ranks"
    assert known.processes_line(results.baseline(gpus=[gpu(0), gpu(1)])) == "2 processes"
    assert known.processes_line(results.cannot_judge()) is None
