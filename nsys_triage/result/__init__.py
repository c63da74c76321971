"""The JSON contract of an analysis."""
