"""Run the command line with ``python -m calibrant``."""

from calibrant.cli import main

main()
