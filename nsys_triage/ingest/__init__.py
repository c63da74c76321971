"""Turns the file that a user gives into a SQLite export: recognises it, has nsys export it, keeps that."""

from nsys_triage.ingest.source import ExportSettings, Source, open_source

__all__ = ["ExportSettings", "Source", "open_source"]
