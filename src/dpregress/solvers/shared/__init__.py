"""What rooms of solvers share."""
