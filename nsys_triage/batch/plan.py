"""What is there and what will be done: jobs of one trace or several ranks, copies, skipped files, bad ones."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nsys_triage.batch.inputs import Found, Unreadable
from nsys_triage.batch.messages import Failed, FailureKind, Looked, Options
from nsys_triage.batch.ranks import Member, grouped, template
from nsys_triage.batch.store import key_of, safe_name
from nsys_triage.ingest.files import base_name


@dataclass(frozen=True, slots=True)
class Job:
    """What gives one result. Inputs are called by their labels."""

    key: str
    name: str  # of its files, without suffix
    label: str
    inputs: tuple[str, ...]  # what is read, ranks in order
    places: tuple[str, ...]
    contents: tuple[str, ...]
    size_bytes: int
    copies: tuple[tuple[str, str], ...] = ()  # other names of the same content: (label, content)
    same_run: tuple[str, ...] = ()  # the report or export of the same run that is not read

    @property
    def also(self) -> tuple[str, ...]:
        """Other names of the same content."""
        return tuple(label for label, _ in self.copies)


@dataclass(frozen=True, slots=True)
class Failure:
    """An input without a result."""

    input: str
    kind: FailureKind
    reason: str


def named(failure: Failure) -> str:
    """The reason with the input's whole label in it: sentences about a file begin with its base name."""
    folder, _, name = failure.input.rpartition("/")
    if failure.reason.startswith(f"{name} "):
        return f"{folder}/{failure.reason}" if folder else failure.reason
    return f"{failure.input}: {failure.reason}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything, in a fixed order."""

    jobs: list[Job]
    failures: list[Failure]  # unfinished files too
    files: int = 0
    done: frozenset[str] = frozenset()  # keys of jobs that need not be done again

    @property
    def to_do(self) -> list[Job]:
        """The jobs without a result yet, the largest first, so that none of them is the last to run alone."""
        return sorted(
            (j for j in self.jobs if j.key not in self.done), key=lambda j: (-j.size_bytes, j.label)
        )


@dataclass(slots=True)
class _File:
    """A file that can be analysed."""

    index: int
    found: Found
    looked: Looked
    same_run: list[str] = field(default_factory=list)


def exports_of_reports(files: Sequence[Found], outcomes: Sequence[Looked | Failed]) -> dict[int, int]:
    """Report -> export of the same run that lies beside it, by position.

    The same run: one folder, one name but for the suffix, the export complete, not filtered and not older than the
    report, and no other version of nsys behind it.
    """
    exports: dict[tuple[str, str], int] = {}
    for index, (file, looked) in enumerate(zip(files, outcomes, strict=True)):
        if isinstance(looked, Looked) and looked.kind == "sqlite" and not looked.filtered:
            exports.setdefault(_stem(file), index)
    pairs = {}
    for index, (file, looked) in enumerate(zip(files, outcomes, strict=True)):
        other = exports.get(_stem(file))
        if not isinstance(looked, Looked) or looked.kind != "report" or other is None:
            continue
        export = outcomes[other]
        versions = {looked.capture_version, export.capture_version} if isinstance(export, Looked) else set()
        if len(versions - {None}) <= 1 and not _older(files[other], file):
            pairs[index] = other
    return pairs


def _stem(file: Found) -> tuple[str, str]:
    name = file.place.rpartition("/")[2]
    return file.folder, name.rpartition(".")[0] or name


def _older(export: Found, report: Found) -> bool:
    """Whether the export was written before the report; versions of remote files are no times."""
    return export.version.isdigit() and report.version.isdigit() and int(export.version) < int(report.version)


def make_plan(
    files: Sequence[Found],
    outcomes: Sequence[Looked | Failed],
    unreadable: Sequence[Unreadable],
    options: Options,
    done: Mapping[str, str],
    *,
    group: bool = True,
) -> Plan:
    """The plan for files and what was found out about each; `done` are names of finished jobs by key."""
    failures = [Failure(row.label, "input", row.reason) for row in unreadable]
    failures += [
        Failure(file.label, looked.kind, looked.reason)
        for file, looked in zip(files, outcomes, strict=True)
        if isinstance(looked, Failed)
    ]
    pairs = exports_of_reports(files, outcomes)
    good = {
        index: _File(index, file, looked)
        for index, (file, looked) in enumerate(zip(files, outcomes, strict=True))
        if isinstance(looked, Looked) and index not in pairs
    }
    for report, export in pairs.items():
        good[export].same_run.append(files[report].label)
    teams = _teams(good.values()) if group else []
    in_teams = {file.index for team in teams for file in team}
    teams += [[file] for file in good.values() if file.index not in in_teams]
    jobs = _jobs(teams, options, done)
    return Plan(
        jobs=sorted(jobs, key=lambda job: (job.label, job.key)),
        failures=sorted(failures, key=lambda row: (row.input, row.reason)),
        files=len(files) + len(unreadable),
        done=frozenset(job.key for job in jobs if job.key in done),
    )


def _teams(files: Iterable[_File]) -> list[list[_File]]:
    """Files that are ranks of one job, by rank; a copy of a rank in the same folder is no second rank."""
    members, by_index, seen = [], {}, set()
    for file in files:
        looked = file.looked
        same = (file.found.folder, looked.content)
        if looked.rank is None or looked.world_size is None or same in seen:
            continue
        seen.add(same)
        by_index[file.index] = file
        name = file.found.place.rpartition("/")[2]
        members.append(
            Member(file.index, file.found.folder, name, looked.rank, looked.world_size, looked.started_ns)
        )
    return [[by_index[member.index] for member in job] for job in grouped(members)]


def _jobs(teams: Sequence[Sequence[_File]], options: Options, done: Mapping[str, str]) -> list[Job]:
    """One job per distinct content; the other names of a content go with the job that reads it, jobs of ranks first."""
    jobs: dict[str, Job] = {}
    owner: dict[str, str] = {}  # content -> key
    copies: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for team in sorted(teams, key=lambda team: (len(team) == 1, team[0].found.label, team[0].index)):
        contents = tuple(file.looked.content for file in team)
        key = key_of(contents, options)
        taken = key if key in jobs else owner.get(contents[0]) if len(team) == 1 else None
        if taken is not None:
            copies[taken] += [
                (label, file.looked.content) for file in team for label in (file.found.label, *file.same_run)
            ]
            continue
        for content in contents:
            owner.setdefault(content, key)
        label = _label(team)
        jobs[key] = Job(
            key=key,
            name=done.get(key) or safe_name(_stem_text(label, team), key),
            label=label,
            inputs=tuple(file.found.label for file in team),
            places=tuple(file.found.place for file in team),
            contents=contents,
            size_bytes=sum(file.found.size_bytes for file in team),
            same_run=tuple(sorted(label for file in team for label in file.same_run)),
        )
    return [replace(job, copies=tuple(sorted(copies[key]))) for key, job in jobs.items()]


def _label(team: Sequence[_File]) -> str:
    """What a job is called: its file, or the common form of its ranks' names."""
    first = team[0]
    if len(team) == 1:
        return first.found.label
    folder, _, name = first.found.label.rpartition("/")
    forms = {template(base_name(Path(file.found.place)), file.looked.rank or 0) for file in team}
    form = forms.pop() if len(forms) == 1 else name
    return f"{folder}/{form}" if folder else form


def _stem_text(label: str, team: Sequence[_File]) -> str:
    stem = label.rpartition(".")[0] or label
    return stem if len(team) == 1 else f"{stem.replace('*', '')}-{len(team)}-ranks"


def without(job: Job, members: Mapping[int, str], options: Options, done: Mapping[str, str]) -> Job | None:
    """The job without those of its inputs, by position; None where nothing is left."""
    kept = [index for index in range(len(job.inputs)) if index not in members]
    if not kept:
        return None
    contents = tuple(job.contents[index] for index in kept)
    key = key_of(contents, options)
    return replace(
        job,
        key=key,
        name=done.get(key) or safe_name(job.name.rpartition("-")[0], key),
        inputs=tuple(job.inputs[index] for index in kept),
        places=tuple(job.places[index] for index in kept),
        contents=contents,
        copies=tuple(copy for copy in job.copies if copy[1] in contents),
    )


def failures_of(job: Job, kind: FailureKind, reason: str) -> list[Failure]:
    """A failure for every input of a job."""
    return blamed(job, kind, dict.fromkeys(range(len(job.inputs)), reason))


def blamed(job: Job, kind: FailureKind, members: Mapping[int, str]) -> list[Failure]:
    """A failure for those inputs of a job, by position, and for all other names of their content."""
    failures = [Failure(job.inputs[index], kind, reason) for index, reason in members.items()]
    reasons = {job.contents[index]: (job.inputs[index], reason) for index, reason in members.items()}
    for label, content in job.copies:
        if content in reasons:
            original, reason = reasons[content]
            failures.append(Failure(label, kind, f"its content is that of {original}: {reason}"))
    return failures


def merged(jobs: Iterable[Job]) -> list[Job]:
    """Jobs by label, each key once: what several read is one job, and the others' inputs are other names of it."""
    found: dict[str, Job] = {}
    for job in sorted(jobs, key=lambda job: (job.label, job.key)):
        first = found.setdefault(job.key, job)
        if first is not job:
            more = (*zip(job.inputs, job.contents, strict=True), *job.copies)
            found[job.key] = replace(first, copies=tuple(sorted({*first.copies, *more})))
    return list(found.values())
