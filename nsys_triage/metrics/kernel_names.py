"""What a kernel is, told from its name: its own name, its class, and whether it communicates.

The own name is the name without return type, namespaces, template arguments and parameters. Whether a kernel
communicates is decided on the own name and its namespaces, never on the whole text: a template argument or a
parameter that mentions NCCL makes no collective.
"""

import re
from typing import Final

import polars as pl

from nsys_triage.metrics.kernel_classes import CLASSES, WRAPPERS, first_match
from nsys_triage.trace.model import Schema

KERNEL_NAMES: Final[Schema] = {
    "code": pl.UInt32,
    "own_name": pl.String,
    "kernel_class": pl.String,
    "communication": pl.Boolean,
    "collective": pl.Boolean,  # NCCL or RCCL; the other communication kernels are not
    "operation": pl.String,  # of communication kernels; null otherwise
}

# --- communication ------------------------------------------------------------------------------------------

_COLLECTIVE: Final = r"^(nccl|rccl)"
# on the own name in lower case: NVSHMEM, MSCCL, userbuffers of Transformer Engine, the all-reduce kernels of
# vLLM, SGLang, TensorRT-LLM and FlashInfer, symmetric memory of PyTorch, expert-parallel exchange
_OTHER_NAMES: Final = (
    r"^(nvshmem|rocshmem|msccl|k?userbuffers_|multimem_)"
    r"|_on_stream_kernel"
    r"|cross_device_reduce"
    r"|all_?reduce"
    r"|^((one|two)_?shot(_kernel)?)$|(one|two)_?shot\w*(reduce|gather|scatter)"
    r"|^((trtllm|custom|ipc|p2p|moe|mnnvl|lamport)_?)*(all_?gather|reduce_?scatter|all_?to_?all|a2a)"
)
_OTHER_NAMESPACES: Final = r"(^|::)(deep_ep|nvshmem\w*|mscclpp|symmetric_memory|nvshmem_extension)::"
# a reduction whose result all threads of a block get; a product with a collective in its tail computes; names
# that Inductor makes list the operations that a kernel was fused from, the collective next to it among them
_COMPUTES: Final = (
    r"(warp|block|thread|cta|cluster|grid|lane|local)_?all_?reduce|gemm|matmul|^triton_[a-z]{3}_fused_"
)
_OPERATIONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("reduce_scatter", "name", r"reduce_?scatter"),
    ("all_reduce", "name", r"all_?reduce|cross_device_reduce|(one|two)_?shot"),
    ("all_gather", "name", r"all_?gather"),
    ("all_to_all", "name", r"all_?to_?all|a2a|^(dispatch|combine)|_(dispatch|combine)(_|$)"),
    ("broadcast", "name", r"broadcast|bcast"),
    ("send_recv", "name", r"send_?recv|push(send|recv)|pull(send|recv)"),
    ("reduce", "name", r"reduce"),
    ("other", "name", r""),
)

# --- own names ----------------------------------------------------------------------------------------------

_IDENTIFIER: Final = r"[^\s<>()\[\]{}:,]+"
# void, namespaces, the name, then template arguments, ABI tags, parameters or nothing: nearly every name
_COMMON: Final = (
    r"^(void\s+)?"
    rf"((?:(?:{_IDENTIFIER}|<unnamed>)?::)*{_IDENTIFIER})"
    r"\s*(?:\[abi:[^\]]*\])*\s*(<|\(|$)"
)
# a scope with brackets (`Type<int>::kernel(`, not `<unnamed>::kernel(`): the name comes after the brackets
_BRACKETED_SCOPE: Final = r"(?:[^m]ed|[^e]d|[^d])>::[A-Za-z_]\w*\s*[<(]|\)::[A-Za-z_]\w*\s*[<(]"
_BRACKETS: Final = re.compile(
    r"operator\s*(?:\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|<=|>=|<|>)"
    r"|->|<unnamed>|[<>()\[\]{}]"
)
_OPENING: Final = frozenset("<([{")
_OPENED_BY: Final = {">": "<", ")": "(", "]": "[", "}": "{"}
_QUALIFIERS: Final = frozenset({"const", "volatile", "&", "&&", "noexcept"})
_MANGLED_PART: Final = re.compile(r"(?:St|S[0-9A-Z]*_|[KVrL])*(\d+)")


def describe(strings: pl.DataFrame) -> pl.DataFrame:
    """Say what the kernels of these names are: `KERNEL_NAMES`, one row per row of `strings`, in its order.

    `strings` has code and text, demangled names as a rule; mangled ones (Itanium ABI) are read as well.
    `kernel_class` is one of the words of the result; `operation` one of all_reduce, all_gather,
    reduce_scatter, broadcast, send_recv, all_to_all, reduce, other. An empty frame gives an empty frame.
    """
    qualified = qualified_names(strings["text"])
    named = strings.select("code", "text", qualified.str.split("::").list.last().alias("own_name"), qualified)
    lower = named.with_columns(
        pl.col("own_name").str.to_lowercase().alias("name"),
        pl.col("qualified").str.to_lowercase(),
        # only the template arguments of wrappers are searched: few names, but the longest ones
        pl.when(pl.col("own_name").is_in(WRAPPERS)).then(pl.col("text").str.to_lowercase()).alias("detail"),
    )
    collective = pl.col("name").str.contains(_COLLECTIVE)
    other = pl.col("name").str.contains(_OTHER_NAMES) | pl.col("qualified").str.contains(_OTHER_NAMESPACES)
    communication = collective | (other & ~pl.col("name").str.contains(_COMPUTES))
    return lower.select(
        pl.col("code").cast(pl.UInt32),
        "own_name",
        pl.when(communication)
        .then(pl.lit("communication"))
        .otherwise(first_match(CLASSES, "other"))
        .alias("kernel_class"),
        communication.alias("communication"),
        collective.alias("collective"),
        pl.when(communication).then(first_match(_OPERATIONS, "other")).alias("operation"),
    )


def qualified_names(texts: pl.Series) -> pl.Series:
    """Names with their namespaces, without return type, template arguments and parameters.

    One row per text, series `qualified`: `void at::<unnamed>::k<int>(int)` is `at::<unnamed>::k`.
    """
    texts = texts.str.replace_all("(anonymous namespace)", "<unnamed>", literal=True)
    parts = texts.str.extract_groups(_COMMON).struct.unnest()
    parts.columns = ["returns", "qualified", "next"]
    # `a::b<...>` without void before it may be a return type, so that the name is still to come
    certain = (
        (pl.col("returns").is_not_null() | (pl.col("next") != "<"))
        & (pl.col("qualified") != "decltype")
        & ~pl.col("scoped")
        & ~pl.col("mangled")
    )
    common = parts.with_columns(
        texts.alias("text"), scoped=texts.str.contains(_BRACKETED_SCOPE), mangled=texts.str.starts_with("_Z")
    ).select("text", pl.when(certain).then("qualified").alias("qualified"))
    return pl.Series(
        "qualified",
        [
            _read_name(text) if qualified is None else qualified
            for text, qualified in common.select("text", "qualified").iter_rows()
        ],
        dtype=pl.String,
    )


def _read_name(text: str) -> str:
    """Qualified name of one text, bracket by bracket: for the few that no simple pattern fits."""
    if text.startswith("_Z"):
        return _read_mangled(text)
    kept: list[str] = []
    open_brackets: list[str] = []
    position = 0
    for match in _BRACKETS.finditer(text):
        bracket = match.group()
        if bracket in _OPENED_BY:
            # a `>` that closes nothing is an operator; a bracket closes whatever was left open inside it
            if _OPENED_BY[bracket] in open_brackets and (bracket != ">" or open_brackets[-1] == "<"):
                while open_brackets.pop() != _OPENED_BY[bracket]:
                    pass
                position = match.end()
        elif bracket in _OPENING:
            if not open_brackets:
                kept.append(text[position : match.start()])
            open_brackets.append(bracket)
    if not open_brackets:
        kept.append(text[position:])
    words = [word for word in "".join(kept).split() if word not in _QUALIFIERS]
    return words[-1] if words else text


def _read_mangled(text: str) -> str:
    """Namespaces and name of a mangled text, up to its template arguments or parameters."""
    position = 3 if text.startswith("_ZN") else 2
    parts: list[str] = []
    while match := _MANGLED_PART.match(text, position):
        end = match.end() + int(match.group(1))
        parts.append(text[match.end() : end])
        position = end
        if not text.startswith("_ZN"):
            break
    return "::".join(parts) or text
