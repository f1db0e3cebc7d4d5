"""Tables and figures as commands; a finished training run is kept and not repeated."""
