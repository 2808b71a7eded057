"""``python -m dpregress``: the command of the same name."""

from dpregress.cli import main

if __name__ == "__main__":
    main()
