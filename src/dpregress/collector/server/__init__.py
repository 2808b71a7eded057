"""The collector's HTTP service. It needs the ``collector`` extra."""
