"""``python -m calibrant``: the command line."""

from calibrant.cli import main

main()
