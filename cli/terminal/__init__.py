"""What the command knows of the terminal that it writes to: colour, width, characters that it must not get raw, progress, and the
words typed there."""
