"""Random traces for comparing the fast ledger with the reference."""

import random
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from nsys_triage.trace.model import Trace
from tests.metrics.random_rows import ACTIONS, LENGTHS, OPTIONAL, THREADS, Player, Steps

ROUNDS: Final = (1, 2, 3, 6)
FIRST_NS: Final = (0, -2_000_000, 60_000_000_000)
USUAL_THREADS: Final = (0, 0, 0, 1, 1, 2, 3)

Action = tuple[str, int, int, int, int]  # what, which thread, two lengths, a number that decides the rest


@dataclass(frozen=True)
class RandomTrace:
    """A trace with the steps and the window that go with it."""

    trace: Trace
    steps: Steps
    window: tuple[int, int]


def play(actions: list[Action], rounds: int, first_ns: int) -> Player:
    """The rows that the actions leave, played `rounds` times."""
    player = Player(first_ns)
    for _ in range(rounds):
        for action, thread, a, b, flag in actions:
            player.act(action, THREADS[thread], a, b, flag)
    player.finish()
    return player


def build(
    actions: list[Action],
    rounds: int,
    first_ns: int,
    *,
    seed: int,
    missing: set[str],
    one_gpu: bool,
    late: bool,
    apart: bool,
) -> RandomTrace:
    """The trace of those actions. `one_gpu`: two processes share one; `late`: the window leaves the first third
    out; `apart`: there is time between the steps."""
    player = play(actions, rounds, first_ns)
    trace = player.trace(seed, missing, one_gpu=one_gpu)
    work = [row for table in ("kernels", "memcpys", "memsets", "graphs") for row in player.rows[table]]
    first = min((row["start_ns"] for row in work), default=0)
    last = max((row["end_ns"] for row in work), default=1)
    return RandomTrace(trace, player.steps(apart), (first + (last - first) // 3 if late else first, last))


@st.composite
def traces(draw: st.DrawFn) -> RandomTrace:
    """Random traces with steps and a window."""
    action = st.tuples(
        st.sampled_from(ACTIONS),
        st.sampled_from(USUAL_THREADS),
        st.sampled_from(LENGTHS),
        st.sampled_from(LENGTHS),
        st.integers(0, 255),
    )
    actions = draw(st.lists(action, min_size=2, max_size=20) | st.lists(action, min_size=20, max_size=60))
    few = st.sets(st.sampled_from(OPTIONAL), max_size=2)
    return build(
        actions,
        draw(st.sampled_from(ROUNDS)),
        draw(st.sampled_from(FIRST_NS)),
        seed=draw(st.integers(0, 3)),
        missing=draw(few) if draw(st.integers(0, 3)) == 3 else set(),
        one_gpu=draw(st.booleans()),
        late=draw(st.booleans()),
        apart=draw(st.booleans()),
    )


def dense_trace(number: int) -> RandomTrace:
    """One of many random traces, longer than those that Hypothesis draws; it does not shrink."""
    draw = random.Random(number)  # noqa: S311 (no secret)
    lengths = draw.sample(LENGTHS, draw.choice((3, 6, len(LENGTHS))))
    weights = [draw.random() ** 2 for _ in range(8)]
    kinds = sorted(set(ACTIONS))
    chosen = draw.choices(kinds, k=8)
    usual = (
        list(ACTIONS)
        if draw.random() < 0.5
        else [*draw.choices(chosen, weights, k=40), *["launch"] * 8, "late", "copy"]
    )
    threads = draw.choice((USUAL_THREADS, (0,), (0, 1), (0, 1, 2, 3)))
    actions = [
        (
            draw.choice(usual),
            draw.choice(threads),
            draw.choice(lengths),
            draw.choice(lengths),
            draw.randrange(256),
        )
        for _ in range(draw.choice((10, 30, 60)))
    ]
    return build(
        actions,
        draw.choice(ROUNDS),
        draw.choice(FIRST_NS),
        seed=number,
        missing=set(draw.sample(OPTIONAL, draw.choice((0, 0, 0, 1, 2)))),
        one_gpu=draw.random() < 0.5,
        late=draw.random() < 0.5,
        apart=draw.random() < 0.5,
    )
