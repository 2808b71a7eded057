"""The algorithms of four papers, each with its published constants."""
