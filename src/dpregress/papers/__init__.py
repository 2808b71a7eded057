"""The four papers, each with its own constants, assembled from the parts above."""
