"""The models that the lessons build, one file a family."""
