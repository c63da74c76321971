import polars as pl
import pytest

from nsys_triage.metrics import api_names as names
from nsys_triage.trace.model import OVERHEADS, STRINGS

COPYING = names.ASYNC_COPY


def strings(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"code": range(len(texts)), "text": texts}, schema=STRINGS)


def group_of(text: str) -> int:
    return int(names.api_groups(strings(text))["group"][0])


@pytest.mark.parametrize(
    ("recorded", "plain"),
    [
        ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync"),
        ("cudaMemcpy_ptds_v7000", "cudaMemcpy"),
        ("cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel"),
        ("cuMemAlloc_v2", "cuMemAlloc"),
        ("cuLaunchKernel", "cuLaunchKernel"),
        ("cudaStreamWaitEvent_v3020", "cudaStreamWaitEvent"),
    ],
)
def test_suffixes_of_versions_and_stream_modes_are_stripped(recorded: str, plain: str) -> None:
    assert names.api_groups(strings(recorded))["api"].to_list() == [plain]


@pytest.mark.parametrize(
    ("recorded", "group"),
    [
        ("cudaLaunchKernel_v7000", names.KERNEL_LAUNCH),
        ("cudaLaunchKernelExC_v11060", names.KERNEL_LAUNCH),
        ("cudaLaunch_v3020", names.KERNEL_LAUNCH),
        ("cuLaunchKernelEx", names.KERNEL_LAUNCH),
        ("cudaLaunchCooperativeKernel_v9000", names.KERNEL_LAUNCH),
        ("cudaGraphLaunch_v10000", names.GRAPH_LAUNCH),
        ("cuGraphLaunch", names.GRAPH_LAUNCH),
        ("cudaLaunchHostFunc_v10000", 0),  # runs on the host
        ("cudaGraphInstantiate_v10000", 0),
        ("cudaDeviceSynchronize_v3020", names.SYNC),
        ("cudaThreadSynchronize_v3020", names.SYNC),
        ("cuCtxSynchronize", names.SYNC),
        ("cudaEventQuery_v3020", 0),  # asks, does not wait
        ("cudaStreamWaitEvent_v3020", 0),  # makes a stream wait, not the host
        ("cudaMemcpy_v3020", names.BLOCKING_COPY),
        ("cudaMemset_v3020", names.BLOCKING_COPY),
        ("cuMemcpyDtoH_v2", names.BLOCKING_COPY),
        ("cudaMemcpyAsync_v3020", names.ASYNC_COPY),
        ("cuMemcpyHtoDAsync_v2", names.ASYNC_COPY),
        ("cudaMemsetAsync_v3020", 0),
        ("cuModuleLoadDataEx", names.MODULE_LOAD),
        ("cuLibraryLoadData", names.MODULE_LOAD),
        ("cuModuleGetFunction", names.MODULE_LOAD),
        ("cudaFuncGetAttributes_v3020", 0),  # a query
        ("cudaMalloc_v3020", names.ALLOCATION),
        ("cudaFree_v3020", names.ALLOCATION),
        ("cudaFreeHost_v3020", names.ALLOCATION),
        ("cudaHostRegister_v4000", names.ALLOCATION),
        ("cuMemCreate", names.ALLOCATION),
        ("cudaMallocAsync_v11020", 0),  # from a pool
        ("cudaFreeAsync_v11020", 0),
        ("cudaGetDeviceProperties_v3020", 0),
    ],
)
def test_groups_of_calls(recorded: str, group: int) -> None:
    assert group_of(recorded) == group


def test_only_cuda_calls_are_listed() -> None:
    table = names.api_groups(
        strings("poll", "cudaMalloc_v3020", "custom_function", "cublasCreate", "culaInit", "cuInit")
    )
    assert table["code"].to_list() == [1, 5]


def test_os_calls_that_wait_or_read() -> None:
    calls = (
        "pthread_cond_wait",
        "sem_timedwait",
        "poll",
        "pread64",
        "fork",
        "write",
        "pthread_mutex_lock",
        "ioctl",
        "usleep",
    )
    table = names.os_groups(strings(*calls))
    assert table.filter("thread_wait")["code"].to_list() == [0, 1]
    assert table.filter("reads")["code"].to_list() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fwrite", "file"),
        ("fsync", "file"),
        ("pwrite64", "file"),
        ("read", "file"),
        ("pthread_mutex_lock", "lock"),
        ("pthread_cond_wait", "lock"),
        ("sem_timedwait", "lock"),
        ("usleep", "sleep"),
        ("epoll_wait", "wait"),
        ("poll", "wait"),
        ("sendmsg", "network"),
        ("fork", "process"),
        ("waitpid", "process"),
        ("munmap", "memory"),
        ("ioctl", "driver"),
        ("rewind", "other"),
    ],
)
def test_kinds_of_os_calls(name: str, kind: str) -> None:
    assert names.os_kind(name) == kind


def test_overheads_by_type_and_by_name_where_there_is_no_type() -> None:
    texts = strings(
        "CUPTI Buffer flush", "Runtime Triggered Module Loading", "Command Buffer Full", "Chunk Allocation"
    )
    rows = [  # (name, kind): the name counts only where the kind is null
        (0, 3),
        (1, 6),
        (2, 8),
        (3, None),
        (1, None),
        (2, None),
        (0, 6),
    ]
    frame = pl.DataFrame(
        [{"start_ns": 0, "end_ns": 1, "pid": 1, "tid": 1, "name": name, "kind": kind} for name, kind in rows],
        schema=OVERHEADS,
    )
    kinds = names.overhead_kinds(frame, texts)
    assert kinds["profiler"].to_list() == [True, False, False, True, False, False, False]
    assert kinds["loading"].to_list() == [False, True, False, False, True, False, True]


@pytest.mark.parametrize(
    "text",
    [
        "Data loading",
        "DataLoader",
        "data_loader",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "next_batch, step 7",
        "fetch",
        "prefetch",
        "host: decode jpeg",
        "preprocess",
    ],
)
def test_ranges_that_say_data_loading(text: str) -> None:
    assert names.says_data_loading(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "decoder",  # a part of the model
        "aten::linear, op_id = 5, input_op_ids = [data loader]",
        "forward, after data loading",  # behind the comma
        "FSDP::inputs_to_device",
        "input embedding",
        "prefetch weights",
        "prefetch_layer_7",
        "ncclAllGather fetch",
        "fetched",  # not a whole word
    ],
)
def test_ranges_that_do_not(text: str) -> None:
    assert not names.says_data_loading(text)


def test_only_the_asked_codes_are_looked_at() -> None:
    table = strings("DataLoader", "fetch", "forward")
    assert names.loading_names(table, pl.Series([1, 2], dtype=pl.UInt32)).to_list() == [1]
