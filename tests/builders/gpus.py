"""Figures of a few GPUs, as `TARGET_INFO_GPU` holds them."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One GPU model: bytes, bytes per second, hertz."""

    name: str
    chip: str
    sm_count: int
    memory_bytes: int
    memory_bytes_per_s: int
    clock_hz: int
    l2_bytes: int
    compute: tuple[int, int]  # compute capability
    sm: tuple[int, int]  # smMajor, smMinor: not the same as the compute capability
    warps_per_sm: int
    blocks_per_sm: int
    shared_per_sm_bytes: int
    copy_engines: int

    def columns(self) -> dict[str, object]:
        """The columns of TARGET_INFO_GPU that depend on the model alone."""
        return {
            "name": self.name,
            "isDiscrete": 1,
            "l2CacheSize": self.l2_bytes,
            "totalMemory": self.memory_bytes,
            "memoryBandwidth": self.memory_bytes_per_s,
            "clockRate": self.clock_hz,
            "smCount": self.sm_count,
            "luid": 0,
            "chipName": self.chip,
            "ctxswDevPath": "",
            "ctrlDevPath": "",
            "revision": 161,
            "nodeMask": 0,
            "constantMemory": 65_536,
            "maxIPC": 0,
            "maxRegistersPerBlock": 65_536,
            "maxShmemPerBlock": 49_152,
            "maxShmemPerBlockOptin": self.shared_per_sm_bytes - 1024,
            "maxShmemPerSm": self.shared_per_sm_bytes,
            "maxRegistersPerSm": 65_536,
            "threadsPerWarp": 32,
            "asyncEngines": self.copy_engines,
            "maxWarpsPerSm": self.warps_per_sm,
            "maxBlocksPerSm": self.blocks_per_sm,
            "maxThreadsPerBlock": 1024,
            "maxBlockDimX": 1024,
            "maxBlockDimY": 1024,
            "maxBlockDimZ": 64,
            "maxGridDimX": 2_147_483_647,
            "maxGridDimY": 65_535,
            "maxGridDimZ": 65_535,
            "computeMajor": self.compute[0],
            "computeMinor": self.compute[1],
            "smMajor": self.sm[0],
            "smMinor": self.sm[1],
        }


GPUS: Final = {
    "H100": GpuModel(
        name="NVIDIA H100 80GB HBM3",
        chip="GH100",
        sm_count=132,
        memory_bytes=84_929_347_584,
        memory_bytes_per_s=3_352_320_000_000,
        clock_hz=1_980_000_000,
        l2_bytes=52_428_800,
        compute=(9, 0),
        sm=(9, 0),
        warps_per_sm=64,
        blocks_per_sm=32,
        shared_per_sm_bytes=233_472,
        copy_engines=3,
    ),
    "A100": GpuModel(
        name="NVIDIA A100-SXM4-80GB",
        chip="GA100",
        sm_count=108,
        memory_bytes=85_095_874_560,
        memory_bytes_per_s=2_039_040_000_000,
        clock_hz=1_410_000_000,
        l2_bytes=41_943_040,
        compute=(8, 0),
        sm=(8, 2),
        warps_per_sm=64,
        blocks_per_sm=32,
        shared_per_sm_bytes=167_936,
        copy_engines=3,
    ),
    "RTX 3090": GpuModel(
        name="NVIDIA GeForce RTX 3090",
        chip="GA102",
        sm_count=82,
        memory_bytes=25_294_995_456,
        memory_bytes_per_s=936_096_000_000,
        clock_hz=1_695_000_000,
        l2_bytes=6_291_456,
        compute=(8, 6),
        sm=(8, 6),
        warps_per_sm=48,
        blocks_per_sm=16,
        shared_per_sm_bytes=102_400,
        copy_engines=2,
    ),
}
