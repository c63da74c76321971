"""From the paths that a user gives to a comparison: open, analyse one run after the other, compare."""

from collections.abc import Callable
from pathlib import Path

from nsys_triage.analyze import analyze
from nsys_triage.compare.build import SideInput, compare
from nsys_triage.compare.inputs import SideRuns, open_side
from nsys_triage.errors import UsageError
from nsys_triage.ingest import ExportSettings
from nsys_triage.metrics.window import WindowRequest
from nsys_triage.result.compare_model import Comparison
from nsys_triage.result.model import Result
from nsys_triage.rules.run import RuleSettings

Progress = Callable[[str, int | None], None]


def compare_paths(
    before: Path,
    after: Path,
    window: WindowRequest,
    settings: ExportSettings,
    rules: RuleSettings,
    threshold: float | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """The comparison of two paths, each a trace, a result or a folder; a trace named twice is analysed once.

    Raises what `open_side` and `analyze` raise, and `UsageError` for a window with a result, which has its own.
    """
    sides = [open_side(path, settings, progress) for path in (before, after)]
    if window.mode != "auto" and any(run.result is not None for side in sides for run in side.runs):
        raise UsageError("--window cannot be applied to a result, which has its own: give the trace.")
    made: dict[tuple[Path, ...], Result] = {}
    inputs = []
    for side in sides:
        results = []
        for run in side.runs:
            if run.result is not None:
                results.append(run.result)
                continue
            key = tuple(source.path.resolve() for source in run.sources)
            if key not in made:
                made[key] = analyze(run.sources, window, progress, rules)
            results.append(made[key])
        inputs.append(_input(side, results))
    return compare(inputs[0], inputs[1], threshold)


def _input(side: SideRuns, results: list[Result]) -> SideInput:
    return SideInput(
        name=side.name,
        results=results,
        sources=["trace" if run.result is None else "result" for run in side.runs],
        files=[run.files for run in side.runs],
        taken_as=side.taken_as,
        notes=side.notes,
    )
