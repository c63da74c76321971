"""Which GPU a row is about: proven where the trace lets us know it, else one (process, device)."""

from pathlib import Path

import pytest

from nsys_triage.metrics.gpus import PAIRS, Gpus, identify_gpus
from nsys_triage.trace.model import GPU_INFO
from nsys_triage.trace.sqlite import load_trace
from tests.builders.trace import TraceBuilder

UUIDS = ("5eed0000-3b9e-499c-9b49-6e4bbbd5a613", "5eed0001-3b9e-499c-9b49-6e4bbbd5a613")


def gpus_of(builder: TraceBuilder, folder: Path, *pairs: tuple[int, int]) -> Gpus:
    path = builder.write(folder / "t.sqlite")
    trace = load_trace(path, file=path.name, kind="sqlite", capture_version=None)
    return identify_gpus(trace, list(pairs))


def shape(found: Gpus) -> list[tuple[bool, int | None, tuple[int, ...], tuple[int, ...]]]:
    return [(g.known, g.gpu_id, g.processes, g.devices) for g in found.all]


def two_gpus(version: str = "2023.4.4") -> TraceBuilder:
    """Two GPUs whose TARGET_INFO_GPU.id counts against the CUDA order; no table of the devices of a process."""
    return TraceBuilder(version, gpus=("H100", "H100")).kernel(0, 1, pid=10).kernel(0, 1, pid=11)


def test_the_device_table_proves_it_whatever_the_ordinals_say(tmp_path: Path) -> None:
    # both processes see one GPU as device 0: process 10 the second, process 11 the first
    builder = TraceBuilder("2025.5.2", gpus=("H100", "H100")).kernel(0, 1, pid=10).kernel(0, 1, pid=11)
    builder.cuda_device(0, 1, pid=10).cuda_device(0, 0, pid=11)
    found = gpus_of(builder, tmp_path, (10, 0), (11, 0))
    # ids count backwards in what the builder writes: GPU 1 has id 0
    assert shape(found) == [(True, 0, (10,), (0,)), (True, 1, (11,), (0,))]
    assert [g.id for g in found.all] == ["gpu0", "gpu1"]
    assert found.all[0].uuid == UUIDS[1]
    assert found.all[0].name == "NVIDIA H100 80GB HBM3"


def test_two_processes_on_one_gpu_are_one_gpu(tmp_path: Path) -> None:
    builder = TraceBuilder("2025.5.2", gpus=("H100", "H100")).kernel(0, 1, pid=10).kernel(0, 1, pid=11)
    builder.cuda_device(0, 1, pid=10).cuda_device(0, 1, pid=11)
    found = gpus_of(builder, tmp_path, (11, 0), (10, 0))
    assert shape(found) == [(True, 0, (10, 11), (0,))]
    assert found.pairs.schema == PAIRS
    assert found.pairs.rows() == [(10, 0, 0), (11, 0, 0)]


def test_a_pair_that_the_device_table_does_not_hold_is_assumed(tmp_path: Path) -> None:
    builder = TraceBuilder("2025.5.2", gpus=("H100", "H100")).kernel(0, 1, pid=10).cuda_device(0, 0, pid=10)
    found = gpus_of(builder, tmp_path, (10, 0), (10, 7))
    assert shape(found) == [(True, 1, (10,), (0,)), (False, None, (10,), (7,))]
    assert found.all[1].id == "pid10-device7"
    # all GPUs of the machine are of one model, so this one is, too; its identity stays unknown
    assert found.all[1].name == "NVIDIA H100 80GB HBM3"
    assert found.all[1].uuid is None


def test_cuda_ordinals_prove_it_without_a_device_table(tmp_path: Path) -> None:
    found = gpus_of(two_gpus(), tmp_path, (10, 0), (10, 1), (11, 1))
    assert shape(found) == [(True, 1, (10,), (0,)), (True, 0, (10, 11), (1,))]


def test_equal_ordinals_prove_nothing(tmp_path: Path) -> None:
    builder = TraceBuilder("2023.4.4", gpus=()).gpu("H100", cuDevice=0).gpu("H100", cuDevice=0).kernel(0, 1)
    assert shape(gpus_of(builder, tmp_path, (10, 0), (11, 0))) == [
        (False, None, (10,), (0,)),
        (False, None, (11,), (0,)),
    ]


def test_plain_visible_devices_prove_nothing(tmp_path: Path) -> None:
    builder = two_gpus().environment(CUDA_VISIBLE_DEVICES="1,0")
    assert [g.known for g in gpus_of(builder, tmp_path, (10, 0), (11, 0)).all] == [False, False]


@pytest.mark.parametrize("entry", [f"GPU-{UUIDS[1]}", "GPU-5eed0001", "GPU-5EED0001"])
def test_listed_uuids_prove_it(tmp_path: Path, entry: str) -> None:
    builder = two_gpus().environment(CUDA_VISIBLE_DEVICES=f"{entry},GPU-{UUIDS[0]}")
    # in the order of the list, whatever the CUDA ordinals of the machine are
    assert shape(gpus_of(builder, tmp_path, (10, 0), (10, 1))) == [
        (True, 0, (10,), (0,)),
        (True, 1, (10,), (1,)),
    ]


def test_an_ambiguous_uuid_prefix_proves_nothing(tmp_path: Path) -> None:
    builder = two_gpus().environment(CUDA_VISIBLE_DEVICES="GPU-5eed")
    assert shape(gpus_of(builder, tmp_path, (10, 0))) == [(False, None, (10,), (0,))]


def test_a_device_beyond_the_list_is_assumed(tmp_path: Path) -> None:
    builder = two_gpus().environment(CUDA_VISIBLE_DEVICES=f"GPU-{UUIDS[0]}")
    assert [g.known for g in gpus_of(builder, tmp_path, (10, 0), (10, 1)).all] == [True, False]


def test_without_gpu_tables_every_pair_is_a_gpu_of_its_own(tmp_path: Path) -> None:
    builder = TraceBuilder("2023.4.4", gpus=()).kernel(0, 1)
    found = gpus_of(builder, tmp_path, (12, 0), (10, 1), (10, 0))
    assert [g.id for g in found.all] == ["pid10-device0", "pid10-device1", "pid12-device0"]
    assert all(g.name is None and g.info is None for g in found.all)


def test_gpus_are_ordered_by_lowest_process_then_device(tmp_path: Path) -> None:
    builder = TraceBuilder("2025.5.2", gpus=("H100", "A100")).kernel(0, 1, pid=10).kernel(0, 1, pid=11)
    builder.cuda_device(0, 1, pid=11).cuda_device(0, 0, pid=10).cuda_device(1, 1, pid=10)
    found = gpus_of(builder, tmp_path, (11, 0), (10, 1), (10, 0))
    assert [(g.processes, g.devices) for g in found.all] == [((10,), (0,)), ((10, 11), (0, 1))]
    assert [g.index for g in found.all] == [0, 1]


def test_different_models_leave_an_assumed_gpu_without_a_name(tmp_path: Path) -> None:
    builder = TraceBuilder("2023.4.4", gpus=()).gpu("H100", cuDevice=0).gpu("A100", cuDevice=0).kernel(0, 1)
    assert gpus_of(builder, tmp_path, (10, 0)).all[0].name is None


def test_limits_hold_a_row_per_gpu(tmp_path: Path) -> None:
    limits = gpus_of(two_gpus(), tmp_path, (10, 0), (10, 1)).limits()
    assert limits.columns == ["gpu", *GPU_INFO]
    assert limits.select("gpu", "gpu_id", "sm_count").rows() == [(0, 1, 132), (1, 0, 132)]
    nothing = gpus_of(TraceBuilder("2023.4.4", gpus=()).kernel(0, 1), tmp_path, (10, 0)).limits()
    assert nothing.select("gpu", "sm_count").rows() == [(0, None)]


def test_no_work_gives_no_gpus(tmp_path: Path) -> None:
    found = gpus_of(two_gpus(), tmp_path)
    assert found.all == ()
    assert found.pairs.is_empty()
    assert found.pairs.schema == PAIRS
