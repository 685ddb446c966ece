"""What a decision costs in this process, without a server: everyday reviews, those made to take long, and recordings."""
