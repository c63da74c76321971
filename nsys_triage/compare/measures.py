"""The other numbers of both sides: GPUs, copies, communication, synchronising calls, launches."""

from collections.abc import Callable, Sequence
from typing import Final, Literal

from nsys_triage.compare.noise import between, mean
from nsys_triage.compare.numbers import Numbers, given
from nsys_triage.result.compare_model import Measure, Outcome
from nsys_triage.result.model import Unit

Topic = Literal["gpu", "copies", "communication", "sync", "launches"]
Get = Callable[[Numbers], float | None]

LEAST_SHARE: Final = 0.02
"""By how much a count or a size has to differ, beyond what one step at the window's edge holds."""
LEAST_POINTS: Final = 0.05
"""By how much a share has to differ."""
LEAST_RATE: Final = 0.1
"""By how much times and rates have to differ, of which no noise is known; and by LEAST_OF_STEP of the step time."""
LEAST_OF_STEP: Final = 0.01


def measures(
    before: Sequence[Numbers], after: Sequence[Numbers], stepwise: bool, reference_ns: float
) -> list[Measure]:
    """All measures that a side has, in a fixed order; counts, sizes and times per basis and GPU."""
    return _Measures(before, after, stepwise, reference_ns).all()


class _Measures:
    def __init__(
        self, before: Sequence[Numbers], after: Sequence[Numbers], stepwise: bool, reference_ns: float
    ) -> None:
        self.before, self.after, self.stepwise, self.reference_ns = before, after, stepwise, reference_ns

    def all(self) -> list[Measure]:
        found = [self._share("gpu", "", "busy", lambda r: r.busy_ns / r.span_ns if r.span_ns else None)]
        for kind in self._names(lambda r: [k.kind for k in c.kinds] if (c := given(r.result.copies)) else []):
            found += self._copies(kind)
        found += self._communication()
        found += self._sync()
        found.append(
            self._count("launches", "", "calls", lambda r: _of(given(r.result.launches), "host_calls"))
        )
        return [measure for measure in found if measure.before is not None or measure.after is not None]

    def _names(self, of: Callable[[Numbers], list[str]]) -> list[str]:
        return list(dict.fromkeys(name for run in (*self.before, *self.after) for name in of(run)))

    def _copies(self, kind: str) -> list[Measure]:
        def part(run: Numbers, field: str) -> float | None:
            copies = given(run.result.copies)
            if copies is None:
                return None
            row = next((k for k in copies.kinds if k.kind == kind), None)
            return 0.0 if row is None else _of(row, field)

        def pageable(run: Numbers) -> float | None:
            size, pinned_not = part(run, "bytes"), part(run, "pageable_bytes")
            return pinned_not / size if size and pinned_not is not None else None

        def rate(run: Numbers) -> float | None:
            size, time = part(run, "bytes"), part(run, "total_ns")
            return size / time * 1e9 if size and time else None

        found = [
            self._count("copies", kind, "count", lambda r: part(r, "count")),
            self._count("copies", kind, "size", lambda r: part(r, "bytes"), "bytes"),
            time := self._time("copies", kind, "time", lambda r: part(r, "total_ns")),
        ]
        if "host" in kind:
            found.append(self._share("copies", kind, "from or to pageable memory", pageable))
        # the rate is the time's, seen another way
        found.append(self._plain("copies", kind, "rate", rate, "bytes_per_s", time.outcome))
        return found

    def _communication(self) -> list[Measure]:
        def part(field: str) -> Get:
            return lambda r: _of(given(r.result.collectives), field)

        def count(run: Numbers) -> float | None:
            block = given(run.result.collectives)
            return None if block is None else float(block.count + block.other_count)

        if not any(count(run) for run in (*self.before, *self.after)):
            return []
        return [
            self._count("communication", "", "count", count),
            self._time("communication", "", "time", part("total_ns")),
            self._time("communication", "", "exposed", part("exposed_ns")),
            self._time("communication", "", "waiting for other ranks", part("wait_ns")),
            self._time("communication", "", "transfer", part("transfer_ns")),
        ]

    def _sync(self) -> list[Measure]:
        def part(field: str) -> Get:
            return lambda r: _of(given(r.result.sync), field)

        def calls(api: str) -> Get:
            def of(run: Numbers) -> float | None:
                sync = given(run.result.sync)
                return (
                    None if sync is None else float(sum(row.calls for row in sync.by_api if row.api == api))
                )

            return of

        def readbacks(run: Numbers) -> float | None:
            sync = given(run.result.sync)
            return None if sync is None else float(sync.readbacks.count)

        found = [
            self._count("sync", "", "calls", part("calls")),
            self._time("sync", "", "idle time they cost", part("cost_ns")),
            self._count("sync", "", "read-backs", readbacks),
        ]
        apis = self._names(lambda r: [row.api for row in s.by_api] if (s := given(r.result.sync)) else [])
        found += [self._count("sync", api, "calls", calls(api)) for api in apis]
        return found

    # --- kinds of numbers -------------------------------------------------------------------------------------

    def _values(self, get: Get, per_basis: bool) -> tuple[list[float], list[float]] | None:
        sides = []
        for side in (self.before, self.after):
            values = [get(run) for run in side]
            known = [
                value / (self._units(run) if per_basis else 1)
                for value, run in zip(values, side, strict=True)
                if value is not None
            ]
            sides.append(known if len(known) == len(values) else [])
        return (sides[0], sides[1]) if sides[0] or sides[1] else None

    def _units(self, run: Numbers) -> float:
        if self.stepwise and run.steps:
            return run.gpus * run.steps.count
        return max(1e-9, run.gpus * run.span_ns / 1e9)

    def _edge(self) -> float:
        """The share of a count that one step at each window's edge may hold."""
        steps = [[run.steps.count for run in side if run.steps] for side in (self.before, self.after)]
        if not self.stepwise or not steps[0] or not steps[1]:
            return 0.1
        return 1 / sum(steps[0]) + 1 / sum(steps[1])

    def _measure(
        self,
        head: tuple[Topic, str, str],
        unit: Unit,
        get: Get,
        per_basis: bool,
        judge: Callable[[float, float], bool],
    ) -> Measure:
        found = self._values(get, per_basis) or ([], [])
        before, after = (mean(values) if values else None for values in found)
        outcome: Outcome = "inconclusive"
        if before is not None and after is not None:
            noise = between(found[0], found[1], 0.99)
            inside = noise is not None and noise.low <= 0 <= noise.high
            changed = judge(before, after) and not inside
            outcome = ("higher" if after > before else "lower") if changed else "no_change"
        share = round(after / before - 1, 6) if before and after is not None else None
        return Measure(
            topic=head[0], name=head[1], what=head[2], unit=unit, per_basis=per_basis,
            before=None if before is None else round(before, 6), after=None if after is None else round(after, 6),
            change_share=share, outcome=outcome,
        )  # fmt: skip

    def _count(self, topic: Topic, name: str, what: str, get: Get, unit: Unit = "count") -> Measure:
        least = max(LEAST_SHARE, self._edge())
        least_calls = 1 / max(1.0, sum(self._units(run) / run.gpus for run in self.before))
        return self._measure(
            (topic, name, what),
            unit,
            get,
            True,
            lambda b, a: abs(a - b) > least * max(b, a) + (least_calls if unit == "count" else 0),
        )

    def _time(self, topic: Topic, name: str, what: str, get: Get) -> Measure:
        def judge(before: float, after: float) -> bool:
            change = abs(after - before)
            return change > LEAST_RATE * before and change > LEAST_OF_STEP * self.reference_ns

        return self._measure((topic, name, what), "ns", get, True, judge)

    def _share(self, topic: Topic, name: str, what: str, get: Get) -> Measure:
        return self._measure((topic, name, what), "share", get, False, lambda b, a: abs(a - b) > LEAST_POINTS)

    def _plain(self, topic: Topic, name: str, what: str, get: Get, unit: Unit, like: Outcome) -> Measure:
        changed = like in ("lower", "higher")
        return self._measure(
            (topic, name, what), unit, get, False, lambda b, a: changed and abs(a - b) > LEAST_RATE * b
        )


def _of(block: object, field: str) -> float | None:
    """A number of a block; None where either is not there."""
    value = None if block is None else given(getattr(block, field))
    return None if value is None else float(value)
