"""Names of files as people may see them, and files that appear whole or not at all."""

import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nsys_triage.errors import OutputError


def base_name(path: Path) -> str:
    """The last part of a path as text that is safe to print and to encode, never the folders before it.

    What is not UTF-8 or not printable (line breaks, escape sequences, text direction marks) becomes U+FFFD.
    """
    name = path.name or path.absolute().name or str(path)
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def shell_name(name: str) -> str:
    """A base name as an argument of a command line that a person pastes into a shell."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def why(error: OSError) -> str:
    """The reason of a system error, without the path."""
    return (error.strerror or type(error).__name__).lower()


def check_target(path: Path, inputs: tuple[Path, ...], force: bool) -> Path:
    """The place where an output will be written, links resolved; nothing is written yet.

    Raises `OutputError` where something is there already and `force` is not set, where it is one of `inputs`
    (whether forced or not), is not a regular file, or where its folder is missing or cannot be written.
    """
    name = base_name(path)
    try:
        target = path.resolve()
        if any(target.exists() and given.exists() and target.samefile(given) for given in inputs):
            raise OutputError(f"{name} is an input and cannot be the output too: choose another name.")
        if target.exists() and not target.is_file():
            raise OutputError(f"{name} is not a regular file: choose another name for the output.")
        if target.exists() and not force:
            raise OutputError(f"{name} exists already: choose another name, or overwrite it with --force.")
        folder_is_there, writable = target.parent.is_dir(), os.access(target.parent, os.W_OK | os.X_OK)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        reason = why(error) if isinstance(error, OSError) else "a loop of links"
        raise OutputError(
            f"{name} cannot be written: {reason}: choose another name for the output."
        ) from error
    if not folder_is_there:
        raise OutputError(
            f"{name} cannot be written: its folder does not exist: make it, or choose another one."
        )
    if not writable:
        raise OutputError(f"{name} cannot be written: its folder is not writable: choose another one.")
    return target


@contextmanager
def whole_file(target: Path, force: bool) -> Iterator[Path]:
    """A temporary name beside `target`; it becomes `target` when the block ends, and goes if it fails.

    Without `force` a file that has appeared at `target` meanwhile is left alone. Raises `OutputError`.
    """
    # the name stays short: a target's own name may be as long as the file system allows
    temporary = target.with_name(f".nsys-triage-{secrets.token_hex(8)}.tmp")
    try:
        # not through mkstemp, whose files only their owner can read whatever the umask says
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        publish(temporary, target, force)
    except FileExistsError as error:
        raise OutputError(
            f"{base_name(target)} exists already: choose another name, or overwrite it with --force."
        ) from error
    except OSError as error:
        raise OutputError(
            f"{base_name(target)} cannot be written: {why(error)}: choose another place for the output."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def publish(temporary: Path, target: Path, force: bool) -> None:
    """Gives a finished file its name at once. Raises `FileExistsError` where it is taken, unless `force`."""
    if force:
        temporary.replace(target)
        return
    try:
        target.hardlink_to(temporary)  # fails where the name is taken, which a rename does not
    except FileExistsError:
        raise
    except OSError:  # file systems without hard links
        if target.exists():
            raise FileExistsError(target) from None
        temporary.replace(target)
        return
    temporary.unlink()
