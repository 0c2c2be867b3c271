"""`python -m anonymizer`, and the console script `anonymizer`."""

from anonymizer.cli.main import main

if __name__ == "__main__":
    main()
