"""Claims that hold in distribution, each with its failure probability."""  # noqa: A005 - never imported by name
