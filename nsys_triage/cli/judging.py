"""How traces are judged: what the options say, over what the configuration file says."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from nsys_triage.errors import UsageError

if TYPE_CHECKING:
    from nsys_triage.metrics.window import WindowRequest
    from nsys_triage.result.model import Result
    from nsys_triage.rules.run import RuleSettings
    from nsys_triage.rules.settings import UserSettings

_MOST_CONFIG_BYTES: Final = 1_000_000  # also ends the reading of a file that never ends


@dataclass(frozen=True, slots=True)
class Judging:
    """What the user asked for, checked. The libraries for numbers are imported only where it needs them."""

    window: str = "auto"
    thresholds: dict[tuple[str, str], float] = field(default_factory=dict)
    gates: tuple[str, ...] = ()

    def window_request(self) -> "WindowRequest":
        """The window as the analysis takes it."""
        from nsys_triage.metrics.window import parse_window

        return parse_window(self.window)

    def rule_settings(self) -> "RuleSettings":
        """The thresholds as the analysis takes them."""
        from nsys_triage.rules.run import RuleSettings

        return RuleSettings(self.thresholds)


def judging(
    window: str, thresholds: tuple[str, ...], fail_on: tuple[str, ...], config: Path | None
) -> Judging:
    """The options of `window_option` and `judging_options` of the running command, over the file's settings.

    Raises UsageError for what is wrong in them, before any trace is looked at.
    """
    if config is None and not thresholds and not fail_on:
        asked = Judging(window)
    else:
        from nsys_triage.rules.settings import UserSettings, parse_threshold

        file = read_config(config) if config else UserSettings()
        given = click.get_current_context().get_parameter_source("window") is not ParameterSource.DEFAULT
        asked = Judging(
            window=window if given or file.window is None else file.window,
            thresholds={**file.thresholds, **dict(parse_threshold(text) for text in thresholds)},
            gates=tuple(_gate(text) for text in fail_on) or file.fail_on or (),
        )
    if asked.window not in ("auto", "all"):
        asked.window_request()
    return asked


def read_config(path: Path) -> "UserSettings":
    """The settings in a configuration file. Raises UsageError where it cannot be read or says something wrong."""
    from nsys_triage.ingest.files import base_name, why
    from nsys_triage.rules.settings import settings_of_file

    name = base_name(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_CONFIG_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--config {name} cannot be read: {why(error)}: check the path.") from error
    try:
        if len(data) > _MOST_CONFIG_BYTES:
            raise ValueError("it is longer than 1 MB")
        text = data.decode("utf-8-sig")
    except ValueError as error:  # a UnicodeDecodeError too
        raise UsageError(f"--config {name} is no text in TOML: give the file with the settings.") from error
    return settings_of_file(text, name)


def _gate(text: str) -> str:
    from nsys_triage.rules.settings import parse_gate

    try:
        return parse_gate(text)
    except UsageError as error:
        raise UsageError(f"--fail-on {text}: {error}") from error


def stopped(result: "Result", gates: tuple[str, ...], quiet: bool) -> bool:
    """Whether a gate fired; says on stderr which one, and which could not be decided."""
    if not gates:
        return False
    from nsys_triage.rules.gates import fired, undecided

    if not quiet:
        for check in undecided(result, gates):
            click.echo(f"nsys-triage: --fail-on {check.rule} could not be decided: {check.note}", err=True)
    found = fired(result, gates)
    if found:
        click.echo(f"nsys-triage: failed on {' or '.join(gates)}: {', '.join(found)}.", err=True)
    return bool(found)
