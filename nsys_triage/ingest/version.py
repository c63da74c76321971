"""Versions of nsys, as its own output, reports and exports write them."""

import re
from dataclasses import dataclass
from typing import Self

_VERSION = re.compile(r"(\d{4}(?:[.@]\d+){1,3})(?:-[0-9a-z]+)?")


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version such as 2023.4.4.54; compares by number."""

    parts: tuple[int, ...]

    @classmethod
    def find(cls, text: str) -> Self | None:
        """The first version in a text, such as `2023.4.4.54-234433v0` or `2023@4@4@54-234433v0`, or None."""
        found = _VERSION.search(text)
        return cls(tuple(int(part) for part in re.split("[.@]", found[1]))) if found else None

    def __str__(self) -> str:
        return ".".join(str(part) for part in self.parts)

    @property
    def release(self) -> tuple[int, ...]:
        """Year, number and update: what decides whether one nsys reads the reports of another."""
        return self.parts[:3]
