"""Which traces of a folder are the ranks of one job: by the captured environment, by names where that is not enough."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_APART_NS: Final = 600 * 1_000_000_000  # ranks of one job start within ten minutes of each other


@dataclass(frozen=True, slots=True)
class Member:
    """A trace that says which rank of how many it is."""

    index: int  # of the file
    folder: str
    name: str  # base name
    rank: int
    world_size: int
    started_ns: int | None


def grouped(members: Iterable[Member]) -> list[list[Member]]:
    """The jobs of several ranks, each ordered by rank; members that belong to no such job are left out.

    Members of a job lie in one folder, have one world size and different ranks below it, and began together. Where that
    leaves two of one rank, the names decide: equal but for the rank's number.
    """
    folders: dict[tuple[str, int], list[Member]] = defaultdict(list)
    for member in members:
        if 0 <= member.rank < member.world_size and member.world_size > 1:
            folders[member.folder, member.world_size].append(member)
    jobs = []
    for _, found in sorted(folders.items()):
        for together in _by_start(found):
            if _distinct(together):
                jobs.append(together)
                continue
            names: dict[str, list[Member]] = defaultdict(list)
            for member in together:
                names[template(member.name, member.rank)].append(member)
            jobs += [same for _, same in sorted(names.items()) if _distinct(same)]
    return [sorted(job, key=lambda member: member.rank) for job in jobs if len(job) > 1]


def _distinct(members: Sequence[Member]) -> bool:
    return len({member.rank for member in members}) == len(members)


def _by_start(members: Sequence[Member]) -> list[list[Member]]:
    """Members cut where more than ten minutes lie between two starts; those without a start are one part."""
    timed = sorted(
        (m for m in members if m.started_ns is not None), key=lambda m: (m.started_ns or 0, m.index)
    )
    parts: list[list[Member]] = [[m for m in members if m.started_ns is None]]
    last: int | None = None
    for member in timed:
        start = member.started_ns or 0
        if last is None or start - last > _APART_NS:
            parts.append([])
        parts[-1].append(member)
        last = start
    return [part for part in parts if part]


def template(name: str, rank: int) -> str:
    """A name with the last number in it that is the rank as `*`; the name itself where it has none."""
    places = [found for found in re.finditer(r"\d+", name) if int(found[0]) == rank]
    return f"{name[: places[-1].start()]}*{name[places[-1].end() :]}" if places else name
