"""From measured quantities to findings: one file per rule under `checks`."""
