"""Finds the templates and makes the Jinja environment: autoescape, and what is not defined is an error."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from nsys_triage.errors import TriageError
from nsys_triage.render import filters, palette

_PACKAGE = Path(__file__).parent.parent
PAGE = "report.html.j2"


def templates_folder(package: Path = _PACKAGE) -> Path:
    """The folder of the templates: inside the package (an installed wheel) or beside it (a checkout).

    Raises `TriageError` where neither holds them.
    """
    for folder in (package / "templates", package.parent / "templates"):
        if (folder / PAGE).is_file():
            return folder
    raise TriageError(
        f"the templates of the report are missing: no templates/{PAGE} in or beside {package.name}; "
        "this installation is incomplete, install nsys-triage again"
    )


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(filters.FILTERS)
    environment.globals["colours"] = Markup(palette.style())  # noqa: S704 - made of our own constants
    # a style sheet or a script of our own, put into the page as it is
    environment.globals["static"] = lambda name: Markup((folder / "static" / name).read_text("utf-8"))  # noqa: S704
    return environment


def render(name: str, /, **context: object) -> str:
    """The text of one template with these values.

    Raises `TriageError` without templates, `jinja2.UndefinedError` where a template uses a value it was
    not given.
    """
    return _environment(templates_folder()).get_template(name).render(**context)
