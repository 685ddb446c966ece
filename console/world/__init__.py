"""What pages show: a cluster and its policies as they were read at one moment, and the part of it that one person may see."""
