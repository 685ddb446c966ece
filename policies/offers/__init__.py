"""The table of offers, whose rows are the kinds of machines that exist, and policies as sets of its rows. ``merging`` joins what
several policies set besides."""
