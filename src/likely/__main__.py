"""`python -m likely` is the `likely` command, for environments whose commands are not on the path."""

from likely.cli import main

if __name__ == "__main__":
    main()
