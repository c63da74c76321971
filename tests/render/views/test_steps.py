from msgspec.structs import replace

from nsys_triage.render.views.steps import MOST_ROWS, largest_idle, steps_view
from tests.render import blocks, results
from tests.render.blocks import MS, causes


def test_parts_of_a_step_sum_to_its_duration() -> None:
    step = replace(
        blocks.steps(3).items[2],
        duration_ns=100 * MS, busy_ns=40 * MS, exposed_communication_ns=10 * MS,
        idle=causes(launch=20 * MS, host_sync=15 * MS, input_pipeline=12 * MS, host_compute=5 * MS,
        queued=3 * MS),
    )  # fmt: skip
    view = steps_view(
        results.baseline(steps=replace(blocks.steps(3), items=[step], p50_ns=None, p95_ns=None))
    )
    assert view is not None
    parts = {part.key: part.ns for part in view.processes[0].chart.bars[0].parts}
    assert parts == {
        "busy": 30 * MS, "communication": 10 * MS, "launch": 20 * MS, "host_sync": 15 * MS,
        "input_pipeline": 12 * MS, "host_compute": 5 * MS, "other": 3 * MS, "rest": 5 * MS,
    }  # fmt: skip
    assert view.keys == list(parts)


def test_of_many_steps_the_table_has_the_slow_and_the_longest() -> None:
    view = steps_view(results.baseline(steps=blocks.steps(1_000)))
    assert view is not None
    assert len(view.rows) == MOST_ROWS
    assert view.left_out_rows == 1_000 - MOST_ROWS
    slow = [step.index for step in view.steps.items if step.state == "slow"]
    assert {step.index for step in view.rows} >= set(slow)
    assert [step.index for step in view.rows] == sorted(step.index for step in view.rows)


def test_the_four_processes_with_most_steps_are_drawn() -> None:
    items = [
        step for pid, n in ((1, 3), (2, 9), (3, 5), (4, 7), (5, 8)) for step in blocks.steps(n, pid=pid).items
    ]
    view = steps_view(results.baseline(steps=replace(blocks.steps(3), items=items)))
    assert view is not None
    assert [p.pid for p in view.processes] == [2, 3, 4, 5]
    assert view.left_out_processes == 1


def test_the_largest_idle_cause_of_a_step() -> None:
    step = blocks.steps(3).items[0]
    assert largest_idle(replace(step, idle=causes(launch=5, queued=5, host_sync=3))) == ("launch", 5)
    assert largest_idle(replace(step, idle=[])) is None


def test_no_steps_no_section() -> None:
    nothing = replace(blocks.steps(3), source="none", items=[])
    assert steps_view(results.baseline(steps=nothing)) is None
    assert steps_view(results.minimal()) is None
