"""`berth why`: what is known of one pod or workload becomes an explanation (data), and that one screen of text, JSON, or a
file with the fix."""
