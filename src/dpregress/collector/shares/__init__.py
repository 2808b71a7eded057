"""Two collectors of one study: each holds one additive share of every answer, and adds noise that suffices alone."""
