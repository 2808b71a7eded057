"""Tools that inspect raw rows for the curator only. Their output must not be published."""
