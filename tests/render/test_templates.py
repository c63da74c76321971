from pathlib import Path

import pytest
from jinja2 import UndefinedError

from nsys_triage.errors import TriageError
from nsys_triage.render import templates


def put(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / templates.PAGE).write_text("page", encoding="utf-8")
    return folder


def test_an_installed_wheel_has_them_inside_the_package(tmp_path: Path) -> None:
    inside = put(tmp_path / "nsys_triage" / "templates")
    put(tmp_path / "templates")
    assert templates.templates_folder(tmp_path / "nsys_triage") == inside


def test_a_checkout_has_them_beside_the_package(tmp_path: Path) -> None:
    beside = put(tmp_path / "templates")
    (tmp_path / "nsys_triage").mkdir()
    assert templates.templates_folder(tmp_path / "nsys_triage") == beside


def test_a_folder_of_that_name_with_something_else_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "nsys_triage").mkdir()
    with pytest.raises(TriageError, match="install nsys-triage again"):
        templates.templates_folder(tmp_path / "nsys_triage")


def test_this_installation_has_them() -> None:
    folder = templates.templates_folder()
    assert {path.name for path in folder.iterdir()} >= {templates.PAGE, "macros", "static"}


def test_a_value_that_a_template_is_not_given_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "templates_folder", lambda: tmp_path)
    (tmp_path / "page.j2").write_text("{{ known }}{{ missing }}", encoding="utf-8")
    with pytest.raises(UndefinedError, match="missing"):
        templates.render("page.j2", known=1)


def test_values_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "templates_folder", lambda: tmp_path)
    (tmp_path / "page.j2").write_text("<p>{{ name }}</p>", encoding="utf-8")
    assert templates.render("page.j2", name="<b>&") == "<p>&lt;b&gt;&amp;</p>"
