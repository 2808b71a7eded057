"""What users hand over, as sources and public facts."""
