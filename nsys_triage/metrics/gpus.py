"""Which GPU a row is about.

`deviceId` is the ordinal inside a process, so "device 0" of two processes may be two GPUs. A GPU is one physical
GPU where the trace lets us know it, else one (process, device).
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from nsys_triage.trace.model import GPU_INFO, Trace

PAIRS: Final = {"pid": pl.Int32, "device": pl.Int32, "gpu": pl.UInt16}


@dataclass(frozen=True, slots=True)
class GpuIdentity:
    """One GPU of the trace."""

    index: int
    id: str
    known: bool
    gpu_id: int | None  # TARGET_INFO_GPU.id, None where assumed
    name: str | None
    uuid: str | None
    processes: tuple[int, ...]
    devices: tuple[int, ...]
    info: dict[str, int | str | None] | None  # the row of GPU_INFO, None where it is not known


@dataclass(frozen=True, slots=True)
class Gpus:
    """All GPUs that did work, by lowest process, then device; and which (pid, device) is which."""

    all: tuple[GpuIdentity, ...]
    pairs: pl.DataFrame  # schema PAIRS

    def limits(self) -> pl.DataFrame:
        """One row per GPU (`gpu` UInt16) with the columns of GPU_INFO, null where nothing is known."""
        rows = [{"gpu": g.index, **(g.info or dict.fromkeys(GPU_INFO))} for g in self.all]
        return pl.DataFrame(rows, schema={"gpu": pl.UInt16, **GPU_INFO})


def _physical(trace: Trace, pairs: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """(pid, device) -> TARGET_INFO_GPU.id, for those that the trace proves."""
    known = {
        (pid, ordinal): gpu_id
        for pid, ordinal, gpu_id in trace.cuda_devices.select("pid", "cuda_ordinal", "gpu_id").iter_rows()
        if gpu_id is not None
    }
    if known:
        return {pair: known[pair] for pair in pairs if pair in known}
    visible = trace.info.environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        by_ordinal = {
            ordinal: gpu_id
            for ordinal, gpu_id in trace.gpu_info.select("cuda_ordinal", "gpu_id").iter_rows()
            if ordinal is not None
        }
        # equal ordinals mean that none was recorded: all zero in captures of 2021 and on Windows
        if len(by_ordinal) != trace.gpu_info.height:
            return {}
        return {pair: by_ordinal[pair[1]] for pair in pairs if pair[1] in by_ordinal}
    by_uuid = {
        uuid.lower(): gpu_id
        for uuid, gpu_id in trace.gpu_info.select("uuid", "gpu_id").iter_rows()
        if uuid is not None
    }
    # an entry is a GPU's UUID or the beginning of it; plain numbers prove nothing
    listed = [
        entry.strip().lower().removeprefix("gpu-") if entry.strip().upper().startswith("GPU-") else ""
        for entry in visible.split(",")
    ]
    found: dict[tuple[int, int], int] = {}
    for pair in pairs:
        entry = listed[pair[1]] if 0 <= pair[1] < len(listed) else ""
        matches = [gpu_id for uuid, gpu_id in by_uuid.items() if entry and uuid.startswith(entry)]
        if len(matches) == 1:
            found[pair] = matches[0]
    return found


def identify_gpus(trace: Trace, pairs: list[tuple[int, int]]) -> Gpus:
    """The GPUs behind the (pid, deviceId) pairs that did work.

    Known means, in this order: TARGET_INFO_CUDA_DEVICE; else TARGET_INFO_GPU.cuDevice, only if all its values are
    different and no captured environment sets CUDA_VISIBLE_DEVICES; else the UUIDs listed there.
    """
    physical = _physical(trace, pairs)
    members: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for pair in sorted(pairs):
        key = (1, physical[pair], 0) if pair in physical else (0, *pair)
        members.setdefault(key, []).append(pair)
    infos = {row["gpu_id"]: row for row in trace.gpu_info.iter_rows(named=True)}
    # where all GPUs of the machine are of one model, an assumed GPU is of it, too
    models = {row["name"] for row in infos.values()}
    common = (
        {**next(iter(infos.values())), "uuid": None, "gpu_id": None} if len(models) == 1 and infos else None
    )
    found: list[GpuIdentity] = []
    rows: list[tuple[int, int, int]] = []
    for index, (key, of_gpu) in enumerate(sorted(members.items(), key=lambda item: item[1][0])):
        known, number, device = key
        info = infos.get(number, common) if known else common
        name = info["name"] if info else None
        found.append(
            GpuIdentity(
                index=index,
                id=f"gpu{number}" if known else f"pid{number}-device{device}",
                known=bool(known),
                gpu_id=number if known else None,
                name=name,
                uuid=info["uuid"] if info and known else None,
                processes=tuple(sorted({pid for pid, _ in of_gpu})),
                devices=tuple(sorted({ordinal for _, ordinal in of_gpu})),
                info=info,
            )
        )
        rows += [(pid, ordinal, index) for pid, ordinal in of_gpu]
    return Gpus(tuple(found), pl.DataFrame(rows, schema=PAIRS, orient="row"))
