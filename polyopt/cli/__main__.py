"""`python -m polyopt.cli`."""

from polyopt.cli._main import main

if __name__ == "__main__":
    main()
