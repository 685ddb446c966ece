"""The questions that the bench answers, a file for each: what it measures, its bar and its verdict."""
