"""The command `nsys-triage` itself, which imports a subcommand only when it is used."""

from importlib import import_module
from typing import Any, Final

import click

from nsys_triage import __version__

# name: module of nsys_triage.cli with a click command called `command`
COMMANDS: Final = {
    "report": "report",
    "batch": "batch",
    "compare": "compare",
    "rules": "rules",
    "explain": "explain",
    "doctor": "doctor",
    "cache": "cache",
}


_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class PipeClosedError(Exception):
    """The reader of the output is gone; not a BrokenPipeError, on which click ends with 1."""


class LazyGroup(click.Group):
    """A group that imports its commands one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"nsys_triage.cli.{COMMANDS[cmd_name]}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is not a command")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """What the command returns."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise PipeClosedError from error


@click.group(cls=LazyGroup, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="nsys-triage", message="%(prog)s %(version)s")
def nsys_triage() -> None:
    """Say what keeps the GPU idle in an Nsight Systems trace, what it costs and what to do next."""
