"""What a decision costs in this process, without a server: everyday reviews, and those made to take long."""
