"""What the recorded names of CUDA calls, OS calls, overheads and NVTX ranges mean.

Names are looked at once per distinct text; events then carry a few bits. All patterns are data.
"""

import re
from typing import Final

import polars as pl

# bits of `calls.group`
KERNEL_LAUNCH: Final = 1
GRAPH_LAUNCH: Final = 2
SYNC: Final = 4  # waits by its name
BLOCKING_COPY: Final = 8  # a copy or memset without Async in its name
ASYNC_COPY: Final = 16
MODULE_LOAD: Final = 32
ALLOCATION: Final = 64
LAUNCH: Final = KERNEL_LAUNCH | GRAPH_LAUNCH

_API_GROUPS: Final = (
    (
        KERNEL_LAUNCH,
        r"^(cudaLaunchKernel(ExC)?|cudaLaunch|cuLaunchKernel(Ex)?|cudaLaunchCooperativeKernel(MultiDevice)?|cuLaunchCooperativeKernel(MultiDevice)?|cuLaunch(Grid(Async)?)?)$",
    ),
    (GRAPH_LAUNCH, r"^(cudaGraphLaunch|cuGraphLaunch)$"),
    (SYNC, r"^(cuda(Device|Stream|Event|Thread)Synchronize|cu(Ctx|Stream|Event)Synchronize)$"),
    (ASYNC_COPY, r"^(cudaMemcpy|cuMemcpy).*Async"),
    (
        MODULE_LOAD,
        r"^(cuModuleLoad\w*|cuModuleGetFunction|cuModuleGetGlobal|cuLibraryLoad\w*|cuLibraryGetKernel|cuKernelGetFunction|cuLink\w+|cuFuncLoad"
        r"|cudaModuleLoad\w*|cudaLibraryLoad\w*|cudaLibraryGetKernel|cudaGetFuncBySymbol|cudaFuncLoad)$",
    ),
    (
        ALLOCATION,
        r"^(cudaMalloc(Pitch|3D|Array|3DArray|MipmappedArray|Host|Managed)?|cudaFree(Host|Array|MipmappedArray)?|cudaHost(Alloc|Register|Unregister)"
        r"|cuMemAlloc(Pitch|Host|Managed)?|cuMemFree(Host)?|cuMemHost(Alloc|Register|Unregister)|cu(Array|Array3D|MipmappedArray)(Create|Destroy)"
        # virtual memory calls: what an allocator with growing segments makes instead of cudaMalloc
        r"|cuMem(Create|Release|Map|Unmap|SetAccess|AddressReserve|AddressFree))$",
    ),
)
_BLOCKING: Final = r"^(cudaMemcpy|cuMemcpy|cudaMemset|cuMemset)"


def plain_api_name(column: pl.Expr) -> pl.Expr:
    """API names without version and stream-mode suffixes: `cudaMemcpy_ptds_v7000` is `cudaMemcpy`."""
    return column.str.replace(r"_v\d+$", "").str.replace(r"_pt(sz|ds)$", "")


def api_groups(strings: pl.DataFrame) -> pl.DataFrame:
    """Columns code, api (plain name) and group (UInt8, the bits above) of every string that names a CUDA call."""
    api = plain_api_name(pl.col("text"))
    group = pl.lit(0, pl.UInt8)
    for bit, pattern in _API_GROUPS:
        group = group + pl.when(pl.col("api").str.contains(pattern)).then(bit).otherwise(0).cast(pl.UInt8)
    blocking = pl.col("api").str.contains(_BLOCKING) & ~pl.col("api").str.contains("Async", literal=True)
    group = group + pl.when(blocking).then(BLOCKING_COPY).otherwise(0).cast(pl.UInt8)
    return (
        strings.lazy()
        .filter(pl.col("text").str.contains(r"^cu(da)?[A-Z]"))
        .select("code", api.alias("api"))
        .with_columns(group.alias("group"))
        .collect()
    )


# --- the operating system ---------------------------------------------------------------------------------------

_WAITS: Final = r"^(pthread_cond_(wait|timedwait|clockwait)|sem_(wait|timedwait|clockwait))$"
_WAITS_OR_READS: Final = (
    r"^(poll|ppoll|select|pselect\d*|epoll_(p?wait\d*)|futex\w*"
    r"|read|readv|pread(64)?|preadv\d*|fread\w*|fgets\w*|fgetc\w*|getc|getline|getdelim|recv|recvfrom|recvmsg|recvmmsg|mq_(timed)?receive|msgrcv"
    r"|open(64)?|openat(64)?|fopen(64)?|io_getevents|accept4?|wait|waitpid|waitid|wait[34]"
    # a loader that starts its workers anew forks between two batches: 0.67 s in one gap of a real trace
    r"|fork|vfork|posix_spawnp?"
    r"|pthread_cond_(wait|timedwait|clockwait)|sem_(wait|timedwait|clockwait)"
    r"|WaitForSingleObject(Ex)?|WaitForMultipleObjects(Ex)?|SleepConditionVariable\w*|ReadFile(Ex)?|GetQueuedCompletionStatus)$"
)


def os_groups(strings: pl.DataFrame) -> pl.DataFrame:
    """Columns code, thread_wait (waits for another thread) and reads (waits or reads) of OS calls."""
    name = pl.col("text")
    return strings.select(
        "code",
        name.str.contains(_WAITS).alias("thread_wait"),
        name.str.contains(_WAITS_OR_READS).alias("reads"),
    )


_OS_KINDS: Final = (
    (
        "file",
        r"^(p?writev?\d*(64)?|fwrite\w*|fputs\w*|fputc\w*|putc\w*|puts|v?f?printf|fflush\w*|fsync|fdatasync|sync"
        r"|fclose|close|p?readv?\d*(64)?|fread\w*|fgets\w*|fgetc\w*|getc|getline|getdelim|f?open(at)?(64)?"
        r"|f?truncate(64)?|rename(at)?\d*|unlink(at)?|[fl]?stat(64)?|io_\w+|(Write|Read)File(Ex)?|FlushFileBuffers)$",
    ),
    (
        "lock",
        r"^(pthread_(mutex|rwlock|spin|cond|barrier)_\w+|pthread_(timed|try)?join(_np)?|sem_\w+|futex\w*|flockfile"
        r"|flock|lockf(64)?|sched_yield|WaitFor(Single|Multiple)Objects?(Ex)?|SleepConditionVariable\w*)$",
    ),
    ("sleep", r"^(sleep|usleep|nanosleep|clock_nanosleep|Sleep(Ex)?)$"),
    (
        "wait",
        r"^(p?poll|p?select\d*|epoll_p?wait\d*|pause|sigwait\w*|sigtimedwait|GetQueuedCompletionStatus)$",
    ),
    ("network", r"^(send(to|m?msg)?|recv(from|m?msg)?|connect|accept4?|mq_\w+|msgsnd|msgrcv)$"),
    (
        "process",
        r"^(v?fork|clone|posix_spawnp?|execv\w*|system|popen|pclose|wait|waitpid|waitid|wait[34]|pthread_create|dlopen)$",
    ),
    (
        "memory",
        r"^(mmap(64)?|munmap|mremap|mprotect|madvise|mlock(all|2)?|munlock(all)?|msync|s?brk|shmat|shm_open)$",
    ),
    ("driver", r"^ioctl$"),
)


def os_kind(name: str) -> str:
    """What an OS call does: file, lock, sleep, wait (for a descriptor), network, process, memory, driver or other."""
    return next((kind for kind, pattern in _OS_KINDS if re.search(pattern, name)), "other")


# --- overheads --------------------------------------------------------------------------------------------------

_PROFILER_TYPES: Final = (3, 4, 5)  # CUPTI buffer flush, instrumentation, resource
_LOADING_TYPES: Final = (2, 6, 7)  # driver JIT, runtime-triggered module loading, lazy function loading
_PROFILER_NAMES: Final = (
    r"(?i)buffer flush|data flush|profiling|instrumentation|resource|chunk allocation|tls allocation"
)
_LOADING_NAMES: Final = r"(?i)module loading|lazy function|jit compil|driver compiler"


def overhead_kinds(overheads: pl.DataFrame, strings: pl.DataFrame) -> pl.DataFrame:
    """The overhead rows with `profiler` and `loading` (Boolean): by type, and by name where no type is recorded."""
    named = overheads.join(strings, left_on="name", right_on="code", how="left", maintain_order="left")
    untyped = pl.col("kind").is_null()
    text = pl.col("text").fill_null("")
    return named.with_columns(
        (pl.col("kind").is_in(_PROFILER_TYPES) | (untyped & text.str.contains(_PROFILER_NAMES)))
        .fill_null(value=False)
        .alias("profiler"),
        (pl.col("kind").is_in(_LOADING_TYPES) | (untyped & text.str.contains(_LOADING_NAMES)))
        .fill_null(value=False)
        .alias("loading"),
    ).drop("text")


# --- NVTX -------------------------------------------------------------------------------------------------------

_LOADING_WORDS: Final = re.compile(
    r"(?:^|[^a-z0-9])(?:data ?loader|data loading|load data|load batch|get batch|next batch|fetch|input pipeline"
    r"|decode|augment|collate|preprocess|_next_data)(?:$|[^a-z0-9])|dataloader.*__next__"
)
_LOADING_PARTS: Final = r"(?i)load|batch|fetch|input|decode|augment|collate|preprocess|_next_data|__next__"
_PREFETCH: Final = re.compile(r"(?:^|[^a-z0-9])prefetch(?:$|[^a-z0-9])")
_PREFETCH_OF_WEIGHTS: Final = re.compile(r"weight|param|layer|expert|unshard|all_?gather")
_FRAMEWORK: Final = re.compile(r"^(?:aten|autograd|torch|c10|fsdp)::|^(?:nccl|cudnn|cublas)", re.IGNORECASE)


def says_data_loading(name: str) -> bool:
    """Whether the name of an NVTX range says that data are being loaded.

    Only the part before the first comma counts, words are compared whole and without case, and underscores,
    dashes and camel case part words. Names of framework and library operations never do.
    """
    head = name.split(",", 1)[0].strip()
    if not head or _FRAMEWORK.search(head):
        return False
    lowered = head.lower()
    spaced = re.sub(r"[\s_\-.:/#]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", head)).lower()
    for text in (lowered, spaced):
        if _LOADING_WORDS.search(text):
            return True
        if _PREFETCH.search(text) and not _PREFETCH_OF_WEIGHTS.search(text):
            return True
    return False


def loading_names(strings: pl.DataFrame, codes: pl.Series) -> pl.Series:
    """The codes among `codes` whose text says data loading."""
    # a trace may have hundreds of thousands of names ("step 7"); those without one of these words need no closer look
    maybe = pl.col("text").str.contains(_LOADING_PARTS)
    texts = strings.filter(pl.col("code").is_in(codes.implode()) & maybe)
    return texts.filter(pl.Series([says_data_loading(text) for text in texts["text"]], dtype=pl.Boolean))[
        "code"
    ]
