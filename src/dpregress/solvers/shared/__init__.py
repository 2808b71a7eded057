"""Components that several kinds of solvers share."""
