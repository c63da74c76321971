"""What can go wrong for a user, each with the exit code of the command that ends with it.

Every message says what is wrong, with which file, and what to do next; it is printed as one line on stderr.
"""


class TriageError(Exception):
    """Anything that ends a command without a result."""

    exit_code = 3


class UsageError(TriageError):
    """The command was asked for something it cannot do: a missing file, a window without device work."""

    exit_code = 2


class WindowError(UsageError):
    """The window that was asked for holds no device work."""


class InputError(TriageError):
    """A file that cannot be analysed: not a report, not an export, truncated, damaged."""


class NsysMissingError(TriageError):
    """A report has to be exported and no `nsys` was found."""


class ExportError(TriageError):
    """`nsys export` did not give a complete export."""


class CacheError(TriageError):
    """The cache folder cannot be used."""


class OutputError(UsageError):
    """The output cannot be written where it was asked for."""
