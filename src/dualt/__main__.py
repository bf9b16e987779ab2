"""`python -m dualt` is `dualt`."""

from dualt.cli import main

if __name__ == "__main__":
    main()
