"""Linear and proximal solvers of the block steps, one a file."""
