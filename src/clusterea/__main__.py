"""`python -m clusterea`: the command line."""

from clusterea.entry import main

main()
