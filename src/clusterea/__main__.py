"""`python -m clusterea`: the command line."""

from clusterea.cli import main

main()
