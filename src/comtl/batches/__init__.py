"""Many fits of one kind at once: every array has a leading axis over the fits."""
