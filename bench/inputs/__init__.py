"""What servers are sent: reviews of everyday pods, of hostile ones, and many policies, the same ones each time."""
