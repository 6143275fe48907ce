"""`python -m taskbatch` is the same program as `taskbatch`."""

from taskbatch.cli import main

if __name__ == "__main__":
    main()
