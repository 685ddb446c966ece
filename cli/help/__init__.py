"""What the command tells of itself: its version, its help, its manual page, and to shells how its words go on."""
