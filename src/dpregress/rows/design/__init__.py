"""From columns of a table to columns of a design: encoders, formulas, expressions."""
