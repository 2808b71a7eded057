"""Messages of users: what they send, and coefficients from their sum."""
