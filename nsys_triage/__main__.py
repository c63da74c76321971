"""`python -m nsys_triage` is the same as the `nsys-triage` command."""

from nsys_triage.cli import main

main()
