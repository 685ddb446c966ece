"""A cluster and its policies as they were read at one moment: a frozen value without a reader; ``sources`` makes worlds."""
