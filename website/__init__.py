"""The documentation site: hooks of MkDocs, and the program that runs the tutorials."""
