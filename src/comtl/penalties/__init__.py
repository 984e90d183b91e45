"""What bounds a factor, and the relations that a factor learns."""
