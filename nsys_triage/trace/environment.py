"""Which variables of the captured environment may be known: an allow-list of names and of their values.

Exports hold the whole environment of the recording user, secrets included. Only what tells ranks apart or
distorts performance is read; the rest is counted.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = re.compile(r"-?\d{1,9}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_:,.^+-]{1,64}")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_DEVICE: Final = re.compile(
    r"-?\d{1,3}|(?:GPU|MIG)-[0-9A-Fa-f-]{4,64}|MIG-GPU-[0-9A-Fa-f-]{4,64}/\d{1,3}/\d{1,3}"
)

_RANKS: Final = frozenset(
    {
        "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
        "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NNODES",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
    }
)  # fmt: skip
_SWITCHES: Final = frozenset(
    {
        "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING",
        "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE",
        "NCCL_ALGO", "NCCL_PROTO",
        "TORCH_DISTRIBUTED_DEBUG", "TORCH_CPP_LOG_LEVEL",
        "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_CUDA_ALLOC_CONF",
        "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "PYTHONFAULTHANDLER", "PYTHONDEVMODE", "PYTHONTRACEMALLOC", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    }
)  # fmt: skip
# that a checking tool was loaded is the fact; what it was told is often a path
_TOOLS: Final = re.compile(r"(?:NV_)?(?:COMPUTE_SANITIZER|CUDA_MEMCHECK)[A-Z0-9_]{0,48}")
VISIBLE_DEVICES: Final = "CUDA_VISIBLE_DEVICES"

_SECRET_WORDS: Final = frozenset(
    {
        "AUTH", "COOKIE", "CRED", "CREDENTIAL", "CREDENTIALS", "CREDS", "DSN", "JWT", "KEY", "KEYS",
        "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PAT", "PWD",
        "SECRET", "SECRETS", "SSHPASS", "TOKEN", "TOKENS",
    }
)  # fmt: skip
_SECRET_ENDS: Final = (
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY",
    "CREDENTIALS",
)  # fmt: skip
# a folder, and a socket and programs that ask
_NO_SECRETS: Final = frozenset({"PWD", "OLDPWD", "INIT_CWD", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS"})


@dataclass(frozen=True, slots=True)
class Environment:
    """Allowed variables, and how many there were: all of them, and those whose names look like secrets."""

    allowed: dict[str, str]
    private_count: int
    secret_count: int


def looks_secret(name: str) -> bool:
    """Whether a variable's name says that it holds a secret: `HF_TOKEN`, `AWS_SECRET_KEY`, not `KEYBOARD`."""
    upper = name.upper()
    if upper in _NO_SECRETS:
        return False
    return any(
        word.rstrip("0123456789") in _SECRET_WORDS or word.endswith(_SECRET_ENDS) for word in upper.split("_")
    )


def allowed_value(name: str, value: str) -> str | None:
    """The value that may be kept of a variable, or None where nothing may.

    "" says that it is set and no more: `CUDA_VISIBLE_DEVICES` with anything but indices and UUIDs, checking
    tools with anything but a number.
    """
    if name == VISIBLE_DEVICES:
        return value if all(_DEVICE.fullmatch(entry.strip()) for entry in value.split(",")) else ""
    if name in _RANKS:
        return value if _NUMBER.fullmatch(value) else None
    if name in _SWITCHES:
        return value if _PLAIN.fullmatch(value) else None
    if _TOOLS.fullmatch(name):
        return value if _NUMBER.fullmatch(value) else ""
    return None


def select(entries: Iterable[str]) -> Environment:
    """What may be known of `NAME=value` entries; of several with one name the first counts."""
    allowed: dict[str, str] = {}
    names: set[str] = set()
    for entry in entries:
        match = _ASSIGNMENT.fullmatch(entry)
        if match is None or match[1] in names:
            continue
        name, value = match[1], match[2].strip()
        names.add(name)
        value = value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value
        kept = allowed_value(name, value)
        if kept is not None:
            allowed[name] = kept
    return Environment(dict(sorted(allowed.items())), len(names), sum(map(looks_secret, names)))


def split_block(block: str) -> list[str]:
    """The entries of a whole environment in one text: separated by NUL (exports of 2022) or `;` (later)."""
    return block.split("\0" if "\0" in block else ";")
