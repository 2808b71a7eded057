"""The version of the package, as files and pages name it."""

__version__ = "0.1.0"
SOFTWARE = f"dpregress {__version__}"
