"""CUDA calls that returned an error, without the codes and calls where an error code is an ordinary answer."""

from typing import Final

import polars as pl

from nsys_triage.metrics.api_names import LAUNCH
from nsys_triage.metrics.window import Window
from nsys_triage.metrics.work import Workload
from nsys_triage.trace.model import Schema

ERRORS: Final[Schema] = {
    "api": pl.String,  # plain name
    "code": pl.Int32,
    "calls": pl.Int64,
    "ns": pl.Int64,  # time in those calls
    "launches": pl.Boolean,  # kernel or graph launch calls: what they should have run has no kernel
}
"""One row per call and code, most calls first, then by name and code."""

EXPECTED_CODES: Final[dict[int, str]] = {
    600: "not ready: the answer of a query",
    704: "peer access is already enabled",
    705: "peer access has not been enabled",
    712: "host memory is already registered",
    713: "host memory is not registered",
}
"""Return values that programs ask for: runtime and driver have the same numbers."""

_PROBES: Final = (
    # MPI, UCX and NCCL ask of every buffer whether it is device memory
    r"^(cuPointerGetAttributes?|cudaPointerGetAttributes|cuMemGetAddressRange|cuMemRetainAllocationHandle|cuMemGetHandleForAddressRange"
    # is there a context, a symbol, an attribute, a newer entry point
    r"|cuCtxGet\w+|cuDevicePrimaryCtxSetFlags|cuGetProcAddress\w*|cudaGetDriverEntryPoint\w*|cuModuleGet(Function|Global)|cuLibraryGet\w+"
    r"|cu(da)?DeviceGet\w*Attribute|cudaFuncGetAttributes|cudaGetSymbol\w+|cu(da)?DeviceCanAccessPeer"
    # repeat the error of an earlier call
    r"|cudaGetLastError|cudaPeekAtLastError|cudaProfilerSt\w+)$"
)

NAMES: Final[dict[int, str]] = {
    1: "invalid value", 2: "out of memory", 3: "not initialised", 4: "the driver is shutting down",
    35: "the driver is older than the runtime", 98: "invalid device function", 100: "no device", 101: "invalid device",
    200: "invalid kernel image", 201: "invalid context", 209: "no kernel image for this GPU",
    214: "uncorrectable ECC error", 217: "peer access not supported", 218: "invalid PTX",
    222: "PTX made by a newer compiler than the driver knows", 300: "invalid source",
    304: "operating system call failed", 400: "invalid handle", 500: "not found", 700: "illegal address",
    701: "too many resources for the launch", 702: "launch timed out", 709: "context is destroyed",
    710: "assertion failed on the device", 714: "hardware stack error", 715: "illegal instruction",
    716: "misaligned address", 717: "invalid address space", 718: "invalid program counter", 719: "launch failed",
    720: "cooperative launch too large", 800: "not permitted", 801: "not supported",
    900: "not allowed while a stream is captured", 901: "stream capture was invalidated",
    906: "stream capture crosses into another", 908: "not allowed while capturing",
    910: "wrong thread for the capture", 999: "unknown error",
}  # fmt: skip
"""What common return values mean (cudaError_t, CUresult)."""


def api_errors(workload: Workload, window: Window) -> pl.DataFrame:
    """The calls of the window that returned an error that none asked for (schema ERRORS); empty where there is none."""
    failed = window.rows(workload.calls).filter(
        (pl.col("return_value") != 0) & ~pl.col("return_value").is_in(list(EXPECTED_CODES))
    )
    named = failed.join(
        workload.api.select("code", "api"), left_on="name", right_on="code", how="left", maintain_order="left"
    )
    return (
        named.with_columns(pl.col("api").fill_null("unknown"))
        .filter(~pl.col("api").str.contains(_PROBES))
        .group_by("api", pl.col("return_value").alias("code"))
        .agg(
            pl.len().cast(pl.Int64).alias("calls"),
            (pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns"),
            ((pl.col("group") & LAUNCH) > 0).any().alias("launches"),
        )
        .sort(["calls", "api", "code"], descending=[True, False, False])
        .select(list(ERRORS))
    )


def error_name(code: int) -> str:
    """What a return value means, with its number."""
    return f"{code} ({NAMES[code]})" if code in NAMES else str(code)
