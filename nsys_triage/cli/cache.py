"""`nsys-triage cache`: shows or empties the folder of finished exports."""

from pathlib import Path

import click

from nsys_triage import units
from nsys_triage.cli.options import cache_dir_option


@click.command("cache")
@click.option("--clear", is_flag=True, help="Remove all exports in it.")
@cache_dir_option
def command(clear: bool, cache_dir: Path | None) -> None:
    """Show the folder of finished exports, or empty it."""
    from nsys_triage.ingest.cache import Cache

    cache = Cache.locate(cache_dir)
    if clear:
        removed = cache.clear()
        click.echo(f"removed {units.plural(removed.exports, 'export')}, {units.size(removed.size_bytes)}")
        return
    usage = cache.usage()
    click.echo(cache.folder)
    click.echo(f"{units.plural(usage.exports, 'export')}, {units.size(usage.size_bytes)}")
