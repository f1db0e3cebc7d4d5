"""Tables and figures as resumable commands: each finished cell is kept as one small file."""
