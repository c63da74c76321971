"""From an exported SQLite file to typed frames."""
