"""The trust models and the session."""
